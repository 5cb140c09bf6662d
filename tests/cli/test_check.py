"""`felrec serve --check`: what is open, unprotected or missing, one line each, and nothing on disk changes."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from felrec import runs
from felrec.service.engine.engine import Engine
from felrec.service.http import preflight
from felrec.service.http.audit import Digests
from felrec.service.http.keys import KeyFile
from felrec.store.sqlite import SqliteStore

from .conftest import ENVIRONMENT, command

Invoke = Callable[..., Result]
Table = dict[str, list[tuple[str, str]]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a store of the bundled weights and a file of keys, as they should be."""
    Engine.open(SqliteStore(tmp_path / "store.sqlite"), runs.load("pretrained")).close()
    KeyFile(tmp_path / "keys.json").add(["read", "write"], requests_per_second=5)
    return tmp_path


def check(invoke: Invoke, place: Path, *options: object, run: object = "pretrained") -> tuple[int, Table]:
    """The exit code, and the states and details by check. Fails if anything in the directory has changed."""
    before = contents(place)
    done = invoke("serve", run, "--store", place / "store.sqlite", "--port", 0, "--check", *options)
    assert contents(place) == before
    assert done.stderr == ""
    return done.exit_code, table(done.stdout)


def table(text: str) -> Table:
    head, *lines = text.splitlines()
    assert head.split() == ["check", "state", "details"]
    state, details = head.index("state"), head.index("details")
    found: Table = {}
    for line in lines:
        found.setdefault(line[:state].strip(), []).append((line[state:details].strip(), line[details:].strip()))
    return found


def contents(place: Path) -> dict[str, tuple[object, ...]]:
    entries = [place, *sorted(place.rglob("*"))]
    return {
        str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in entries
    }


def test_all_is_well(invoke: Invoke, place: Path) -> None:
    code, found = check(invoke, place, "--keys", place / "keys.json", "--audit", place / "audit.jsonl")
    assert code == 0
    assert {state for lines in found.values() for state, _ in lines} == {"ok"}
    assert found.keys() == {
        *("run", "store", "directory", "disk space", "keys", "address", "audit log", "open files", "clock")
    }
    assert "belongs to felrec-s" in found["store"][0][1]
    assert "1 with rate limits" in found["keys"][0][1]


def test_without_keys_it_warns(invoke: Invoke, tmp_path: Path) -> None:
    code, found = check(invoke, tmp_path)
    assert code == 1
    assert found["keys"][0][0] == "warning"
    assert "does not exist yet" in found["store"][0][1]


def test_other_machines(invoke: Invoke, place: Path) -> None:
    code, found = check(invoke, place, "--host", "0.0.0.0")
    assert (code, found["keys"][0][0]) == (2, "error")
    code, found = check(invoke, place, "--host", "0.0.0.0", "--keys", place / "keys.json")
    assert (code, found["keys"][0][0]) == (1, "ok")
    assert found["address"][0][0] == "warning"
    assert "TLS" in found["address"][0][1]


def test_keys_that_cannot_do_the_work(invoke: Invoke, place: Path) -> None:
    KeyFile(place / "readers.json").add(["read"])
    code, found = check(invoke, place, "--keys", place / "readers.json")
    assert code == 1
    assert found["keys"][0] == (
        "warning",
        f"no key may write; create one with felrec keys add --scope write --keys {place / 'readers.json'}",
    )
    code, found = check(invoke, place, "--keys", place / "none.json")
    assert (code, found["keys"][0][0]) == (2, "error")
    (place / "bad.json").write_text("{")
    code, found = check(invoke, place, "--keys", place / "bad.json")
    assert (code, found["keys"][0][0]) == (2, "error")


def test_permissions(invoke: Invoke, place: Path) -> None:
    Digests.beside(place / "store.sqlite")
    (place / "audit.jsonl").touch(0o600)
    names = {"store file": "store.sqlite", "keys file": "keys.json", "audit log": "audit.jsonl"}
    names["audit key"] = "store.sqlite-audit-key"
    options = ("--keys", place / "keys.json", "--audit", place / "audit.jsonl")
    for mode, state, code in ((0o644, "warning", 1), (0o660, "error", 2)):
        for name in names.values():
            (place / name).chmod(mode)
        exit_code, found = check(invoke, place, *options)
        assert exit_code == code
        for what, name in names.items():
            assert found[what][-1][0] == state
            assert found[what][-1][1].endswith(f"run chmod 600 {place / name}")
        for name in names.values():
            (place / name).chmod(0o600)
    place.chmod(0o777)
    code, found = check(invoke, place, *options)
    assert (code, found["directory"][0][0]) == (1, "warning")


def test_a_store_in_use_of_another_run_or_damaged(invoke: Invoke, place: Path, run: Path) -> None:
    keys = ("--keys", place / "keys.json")
    with SqliteStore(place / "store.sqlite"):
        code, found = check(invoke, place, *keys)
    assert code == 2
    assert "in use by another engine" in found["store"][0][1]
    code, found = check(invoke, place, *keys, run=run)
    assert code == 2
    assert "belongs to felrec-s, not to felrec-q" in found["store"][0][1]
    (place / "store.sqlite").write_text("not a store " * 1_000)
    code, found = check(invoke, place, *keys)
    assert (code, found["store"][0][0]) == (2, "error")


def test_a_run_that_is_missing_and_a_directory_that_is(invoke: Invoke, tmp_path: Path) -> None:
    code, found = check(invoke, tmp_path, run=tmp_path / "no-run")
    assert (code, found["run"][0][0]) == (2, "error")
    options = ("--store", tmp_path / "nowhere" / "s", "--audit", tmp_path / "nowhere" / "a")
    code, found = check(invoke, tmp_path, *options)
    assert (code, found["directory"][0][0], found["audit log"][0][0]) == (2, "error", "error")


def test_a_port_that_is_taken(invoke: Invoke, place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, found = check(invoke, place, "--port", taken.getsockname()[1])
    assert (code, found["address"][0][0]) == (2, "error")


def test_too_few_open_files(place: Path) -> None:
    arguments = command("serve", "--store", place / "store.sqlite", "--port", 0, "--check")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))  # noqa: E731
    done = subprocess.run(arguments, env=ENVIRONMENT, text=True, capture_output=True, timeout=120, preexec_fn=limit)
    assert done.returncode == 2
    assert table(done.stdout)["open files"][0][0] == "error"


def test_a_clock_that_is_behind(invoke: Invoke, place: Path) -> None:
    later = (place / "store.sqlite").stat().st_mtime + 86_400
    os.utime(place / "store.sqlite", (later, later))
    code, found = check(invoke, place, "--keys", place / "keys.json")
    assert (code, found["clock"][0][0]) == (2, "error")


def test_too_little_space(invoke: Invoke, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, state, code in (("SPACE", "warning", 1), ("LEAST_SPACE", "error", 2)):
        monkeypatch.setattr(preflight, limit, 10**18)  # more than any disk has
        exit_code, found = check(invoke, place, "--keys", place / "keys.json")
        assert (exit_code, found["disk space"][0][0]) == (code, state)
