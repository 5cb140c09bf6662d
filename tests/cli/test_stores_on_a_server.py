"""The commands for stores, with a store in a PostgreSQL database."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from typer.testing import Result

from felrec import runs
from felrec.errors import StoreError
from felrec.service.engine.engine import Engine
from felrec.store.opening import open_store
from felrec.store.postgres_replacing import unfinished_namespace
from postgresql import PostgresServer

from .conftest import ENVIRONMENT, Felrec, command

Invoke = Callable[..., Result]
_numbers = count()


@pytest.fixture
def namespace() -> str:
    return f"cli-{next(_numbers)}"


@pytest.fixture
def file(tmp_path: Path, run: Path, log: Path, invoke: Invoke) -> Path:
    """A store that started from a run and has imported the rest of its log."""
    path = tmp_path / "store.sqlite"
    assert "150 events ingested" in invoke("import", log, run, "--store", path).stdout
    return path


def recommended(store: str | Path, run: Path, namespace: str | None = None) -> list[object]:
    engine = Engine.open(open_store(store, "write", namespace=namespace), runs.load(run))
    try:
        return [engine.recommend(user.id, 10) for user in engine.sample_users(60)]
    finally:
        engine.close()


def test_a_store_moves_to_a_server_and_back_with_one_command_each(
    file: Path, run: Path, tmp_path: Path, postgres: PostgresServer, namespace: str, felrec: Felrec, invoke: Invoke
) -> None:
    address, back = postgres.address(), tmp_path / "back.sqlite"
    before = recommended(file, run)
    done = invoke("replay", file, "--out", address, "--namespace", namespace).stdout
    assert f"/postgres ({namespace}): copied as it is, with 150 events of the journal" in done
    assert "secret" not in done
    assert (
        "150 events in 1 blocks after an initial state of 1,350"
        in invoke("verify", address, run, "--namespace", namespace).stdout
    )
    assert recommended(address, run, namespace) == before
    invoke("replay", address, "--namespace", namespace, "--out", back)
    assert recommended(back, run) == before
    copy = f"{namespace}-copy"
    invoke("replay", address, "--namespace", namespace, "--out", address, "--out-namespace", copy)
    assert recommended(address, run, copy) == before
    taken = felrec("replay", file, "--out", address, "--namespace", namespace)
    assert taken.returncode == 2
    assert f'has a store or other tables in "{namespace}"; choose another --namespace' in taken.stderr
    assert "secret" not in taken.stderr


def test_a_replay_with_other_weights_goes_to_a_server_too(
    file: Path, run: Path, log: Path, postgres: PostgresServer, namespace: str, invoke: Invoke
) -> None:
    done = invoke("replay", file, run, "--log", log, "--out", postgres.address(), "--namespace", namespace).stdout
    assert "1,500 events replayed with felrec-q" in done


def test_a_move_that_is_killed_can_be_repeated(
    file: Path, run: Path, postgres: PostgresServer, namespace: str, invoke: Invoke
) -> None:
    address, beside = postgres.address(), unfinished_namespace(namespace)
    asked = ("replay", file, "--out", address, "--namespace", namespace)
    moving = subprocess.Popen(command(*asked), env=ENVIRONMENT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not exists(address, beside) and moving.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    moving.kill()
    assert moving.wait() == -signal.SIGKILL
    assert exists(address, beside)
    assert not exists(address, namespace)
    invoke(*asked)
    assert not exists(address, beside)
    assert recommended(address, run, namespace) == recommended(file, run)


def exists(address: str, namespace: str) -> bool:
    try:
        open_store(address, "read", namespace=namespace).close()
    except StoreError:
        return False
    return True


def test_logs_and_items_are_imported_into_a_server(
    run: Path, log: Path, tmp_path: Path, postgres: PostgresServer, namespace: str, felrec: Felrec, invoke: Invoke
) -> None:
    place = ("--store", postgres.address(), "--namespace", namespace)
    done = invoke("import", log, run, *place).stdout
    assert f"({namespace}): 150 events ingested, 1,350 already there, 0 late; 1,500 in total" in done
    assert "secret" not in done
    assert "0 events ingested, 1,500 already there" in invoke("import", log, run, *place).stdout
    straight = tmp_path / "straight.sqlite"
    invoke("import", log, run, "--store", straight)
    assert recommended(postgres.address(), run, namespace) == recommended(straight, run)
    titles = tmp_path / "titles.csv"
    titles.write_text("item,title\n1,One\n2,Two\n")
    assert "2 rows accepted, 0 rejected" in invoke("items", "import", titles, run, *place).stdout
    with open_store(postgres.address(), "read", namespace=namespace) as store:
        assert store.load().attributes["1"]["title"] == "One"

    with open_store(postgres.address(), shared=True, namespace=namespace):  # as a process that serves it
        for asked in (("import", log), ("items", "import", titles)):
            refused = felrec(*asked, run, *place)
            assert refused.returncode == 2
            assert "stop all that serve it first, or send them the events" in refused.stderr


def test_what_builds_a_file_anew_says_what_to_do_for_a_server(log: Path, tmp_path: Path, felrec: Felrec) -> None:
    """No server is asked."""
    for asked in (
        ("import", log, "--store", "postgresql://db/felrec", "--late", "merge"),
        ("forget", "postgresql://db/felrec", "--after", "400d"),
    ):
        refused = felrec(*asked)
        assert refused.returncode == 2
        assert "copy the store to a file with felrec replay" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_a_backup_of_a_server_is_its_own_business(
    run: Path, log: Path, tmp_path: Path, postgres: PostgresServer, namespace: str, felrec: Felrec, invoke: Invoke
) -> None:
    place = postgres.address(), "--namespace", namespace
    invoke("import", log, run, "--store", *place)
    refused = felrec("backup", place[0], tmp_path / "copy", *place[1:])
    assert refused.returncode == 2
    assert f"pg_dump -n {namespace} or base backups" in refused.stderr
    assert "felrec export" in refused.stderr
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--out", "new.sqlite", "--latest", "2026-11-17T12:00:00"), "--log and --latest need the run"),
        (("--out", "new.sqlite", "--namespace", "shop"), "a file has no namespaces"),
        (("--out", "new.sqlite", "--out-namespace", "shop"), "a file has no namespaces"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused(
    file: Path, felrec: Felrec, tmp_path: Path, asked: tuple[str, ...], said: str
) -> None:
    refused = felrec("replay", file, *asked)
    assert refused.returncode == 2
    assert said in refused.stderr
