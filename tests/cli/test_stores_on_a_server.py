"""The commands for stores, with a store in a PostgreSQL database."""

from __future__ import annotations

import signal
import subprocess
import sys
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
from felrec.store.postgres_schema import unfinished_namespace
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


def test_silent_users_and_items_are_let_go_on_a_server(
    tmp_path: Path, postgres: PostgresServer, namespace: str, felrec: Felrec, invoke: Invoke
) -> None:
    """The store is what a file becomes by the same command; the old one is kept on request."""
    log = tmp_path / "log.csv"
    lines = [f"old {n % 20},old {n * 7 % 31},{1_000_000_000 + n}" for n in range(300)]
    lines += [f"user {n % 9},item {n * 5 % 7},{1_050_000_000 + n}" for n in range(200)]
    log.write_text("user,item,timestamp\n" + "\n".join(lines) + "\n")
    address, file = (postgres.address(), "--namespace", namespace), tmp_path / "file.sqlite"
    invoke("import", log, "--store", *address)
    invoke("import", log, "--store", file)
    would = invoke("forget", *address, "--after", "400d", "--dry-run").stdout
    assert "would let go of 20 users and 31 items" in would
    assert "secret" not in would
    with open_store(postgres.address(), shared=True, namespace=namespace):  # as a process that serves it
        assert "stop all that serve it first" in felrec("forget", *address, "--after", "400d").stderr
    done = invoke("forget", *address, "--after", "400d", "--keep").stdout
    assert "let go of 20 users and 31 items without an event for 400d, with 300 events; 200 events are left" in done
    invoke("forget", file, "--after", "400d")
    bundled = Path("pretrained")
    assert recommended(postgres.address(), bundled, namespace) == recommended(file, bundled)
    kept = done.strip().splitlines()[-1].partition("(")[2].rstrip(")")
    assert "500 events" in invoke("verify", postgres.address(), "--namespace", kept).stdout
    assert "no problems found" in invoke("verify", *address).stdout
    assert not exists(postgres.address(), unfinished_namespace(namespace))


def test_older_events_are_merged_on_a_server(
    tmp_path: Path, postgres: PostgresServer, namespace: str, invoke: Invoke
) -> None:
    later, older, file = tmp_path / "later.csv", tmp_path / "older.csv", tmp_path / "file.sqlite"
    later.write_text("user,item,timestamp\nada,tea,1050000000\nbob,jam,1050000009\n")
    older.write_text("user,item,timestamp\nada,jam,1040000000\nbob,tea,1040000001\n")
    for place in ((postgres.address(), "--namespace", namespace), (file,)):
        invoke("import", later, "--store", *place)
        done = invoke("import", older, "--store", *place, "--late", "merge").stdout
        assert "2 events merged, 0 already there; 4 in total; the store as it was: " in done
    assert recommended(postgres.address(), Path("pretrained"), namespace) == recommended(file, Path("pretrained"))
    with open_store(postgres.address(), "read", namespace=namespace) as store:
        assert store.load().events.times.tolist() == [1.04e9, 1.04e9 + 1, 1.05e9, 1.05e9 + 9]


@pytest.mark.parametrize("last", ["before", "after"])
def test_a_store_that_is_written_anew_is_the_old_or_the_new_one(
    last: str, tmp_path: Path, postgres: PostgresServer, namespace: str, invoke: Invoke
) -> None:
    """The process ends right before, or right after, the transaction that puts the new store in place."""
    log = tmp_path / "log.csv"
    log.write_text("user,item,timestamp\nada,tea,1000000000\nbob,jam,1050000000\n")
    address = (postgres.address(), "--namespace", namespace)
    invoke("import", log, "--store", *address)
    forget = ("forget", *address, "--after", "400d")
    start = f"""
import os
from felrec.store.postgres_database import PostgresDatabase
whole = PostgresDatabase.give_way
def ending(*given):
    if {last!r} == "after":
        whole(*given)
    os._exit(9)
PostgresDatabase.give_way = ending
from felrec.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", start, *forget], env=ENVIRONMENT, capture_output=True, check=False)
    assert ended.returncode == 9
    with open_store(postgres.address(), "read", namespace=namespace) as store:
        assert store.verify() == []
        assert len(store.load().events) == (1 if last == "after" else 2)
    invoke(*forget)
    with open_store(postgres.address(), "read", namespace=namespace) as store:
        assert store.load().users == ["bob"]


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
        (("--out", "new.sqlite", "--latest", "2026-11-17T12:00:00"), "--log, --latest and --weights need the run"),
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
