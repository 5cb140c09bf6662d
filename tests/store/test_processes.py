"""Processes that share a store, and are killed at any moment: nothing acknowledged is lost, nothing done twice."""

from __future__ import annotations

import multiprocessing
import random
import time
from dataclasses import replace
from pathlib import Path

from felrec.errors import NotLeader, StoreBusy, StoreUnreachable
from felrec.store.opening import open_store
from felrec.store.protocol import Answered
from places import Place
from small_stores import EMPTY_BASE, IDENTITY, one_block

LEASE = 0.3  # seconds
CONTEXT = multiprocessing.get_context("spawn")


Where = tuple[str, str | None]  # address and namespace


def write(where: Where, name: str, stop: Path) -> None:
    """Lead whenever possible, and answer commands with a block each, until told to stop."""
    with open_store(where[0], shared=True, namespace=where[1]) as store:
        while not stop.exists():
            time.sleep(0.001)
            try:
                if not store.lead(name, LEASE):
                    continue
                if store.is_empty:
                    store.begin(IDENTITY, EMPTY_BASE)
                blocks = len(store.load().blocks) - 1
                for block, command in enumerate(store.commands(5), blocks):
                    answered = [Answered(command.number, "")]
                    store.commit(replace(one_block(block), answered=answered, change=command.body))
            except (NotLeader, StoreBusy, StoreUnreachable):
                continue


def post(where: Where, name: str, acknowledged: Path, stop: Path) -> None:
    """Append numbered commands, and note each one that is durable."""
    with open_store(where[0], shared=True, namespace=where[1]) as store, acknowledged.open("ab", buffering=0) as done:
        number = 0
        while not stop.exists():
            time.sleep(0.002)
            body = f"{name} {number}".encode()
            store.append("post", body)
            done.write(body + b"\n")
            number += 1


def test_nothing_acknowledged_is_lost_or_done_twice_whoever_is_killed(place: Place, tmp_path: Path) -> None:
    where = place.address, place.namespace
    stop = tmp_path / "stop"  # a file: a lock could be left by a process that is killed
    chance = random.Random(5)
    writers = [start(write, where, f"writer {n}", stop) for n in range(2)]
    posters = [start(post, where, f"poster {n}", tmp_path / f"poster {n}", stop) for n in range(2)]
    for n in range(6):
        wait_for_posts(tmp_path, 5 * (n + 1))
        time.sleep(chance.random() / 10)
        group = writers if n % 2 else posters
        victim = chance.randrange(2)
        group[victim].kill()
        group[victim].join()
        name = f"poster {n + 2}"
        group[victim] = (
            start(write, where, f"writer {n + 2}", stop) if n % 2 else start(post, where, name, tmp_path / name, stop)
        )
    wait_for_posts(tmp_path, 40)
    stop.touch()
    for process in (*writers, *posters):
        process.join(60)
        assert process.exitcode == 0
    finish(where, tmp_path / "finish")
    store = place("read", shared=False)
    assert store.verify() == []
    kept = store.load()
    bodies = [change.body for change in store.changes(0, 0, most=100_000)]
    acknowledged = set(posts(tmp_path))
    assert len(bodies) == len(set(bodies)) == len(kept.events) == kept.change
    assert acknowledged <= set(bodies)


def posts(folder: Path) -> list[bytes]:
    """What was acknowledged."""
    return [line for file in folder.glob("poster*") for line in file.read_bytes().splitlines()]


def wait_for_posts(folder: Path, least: int) -> None:
    for _ in range(2_000):
        if len(posts(folder)) >= least:
            return
        time.sleep(0.05)
    raise AssertionError("nobody posts any more")


def start(target: object, *arguments: object) -> multiprocessing.process.BaseProcess:
    process = CONTEXT.Process(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
    process.start()
    return process


def finish(where: Where, stop: Path) -> None:
    """Answer what is left in the inbox."""
    process = start(write, where, "the last one", stop)
    with open_store(where[0], shared=True, namespace=where[1]) as store:
        while store.commands(1):
            time.sleep(0.05)
    stop.touch()
    process.join(60)
    assert process.exitcode == 0
