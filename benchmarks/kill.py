"""Repeatedly kill an engine while it writes: `python benchmarks/kill.py --rounds 100`.

A child process submits events from three threads and reports through a pipe what it sends and what is acknowledged.
The parent kills it with SIGKILL at a random moment and checks the file. The next child first repeats the submissions
that were not acknowledged, with the same idempotency keys. After every round:

* no acknowledged event is missing, no event is stored twice, no submission is stored in part;
* the store verifies;
* an engine that opens the file has, byte for byte, the state of an offline replay of the journal.

Of every four stores one is served with the defaults, so that a kill comes long after the last save. The others save,
fold and checkpoint all the time, and are killed a few milliseconds after one of these has begun.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import torch

from felrec import load, split_log, synthetic_log, train
from felrec.data.events import EventColumns, Events
from felrec.fitted import FittedModel
from felrec.recommender import Recommender
from felrec.service.engine import changed_rows
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import IdempotencyKey
from felrec.store import checkpointing, row_blobs, state_writing
from felrec.store.checkpointing import Checkpointer
from felrec.store.sqlite import SqliteStore
from felrec.store.state_writing import StateWriter

SIZE = {"epochs": 1, "width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "history_length": 16}
TINY: dict[str, dict[str, Any]] = {"felrec-s": {**SIZE, "members": 1}, "felrec-q": {**SIZE, "queue_size": 64}}
SIZES = (1, 1, 1, 1, 5, 20, 40, 100, 100, 700)  # events of a submission: single ones, posts, one cut into blocks
NEW_STORE = 5  # rounds after which a new store is used, so that replays stay short
TARGETS = ("any moment", "save", "fold", "checkpoint")  # what a kill is aimed at, one store after another
AIM = 0.004  # seconds within which a kill follows the beginning of its target
START = 1_500_000_000  # the time of event 0; each event has its own second, which identifies it


@dataclass
class Sent:
    """Submissions by key: number of the first event and event count; and which were acknowledged."""

    submissions: dict[str, tuple[int, int]] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)

    def unanswered(self) -> dict[str, tuple[int, int]]:
        """Submissions that must be sent again."""
        return {key: what for key, what in self.submissions.items() if key not in self.acknowledged}

    def hear(self, line: str) -> None:
        """Parse a line from the child."""
        word, key, *numbers = line.split()
        if word == "sent":
            self.submissions[key] = (int(numbers[0]), int(numbers[1]))
        else:
            self.acknowledged.add(key)


@dataclass(frozen=True)
class Round:
    """What one kill left."""

    sent: Sent  # to this store so far
    events: int  # in it
    target: str  # what the kill came just after
    cut_off_save: bool


def events_of(first: int, count: int) -> EventColumns:
    """The same events for the same numbers."""
    rng = random.Random(first)
    pairs = [(f"u{rng.randrange(3_000)}", f"i{rng.randrange(1_000)}") for _ in range(count)]
    times = START + first + np.arange(count, dtype=np.float64)
    return EventColumns([user for user, _ in pairs], [item for _, item in pairs], times)


def busy(target: str, say: Callable[[str], None]) -> Limits:
    """Let an engine save, fold and checkpoint all the time, and report when the target begins."""
    changed_rows._ROWS, row_blobs._PAGE_BYTES = 2, 4_000
    state_writing._LEAST, checkpointing._ENOUGH, checkpointing._LARGE = 0, 16, 64
    owner: type[Any] = Checkpointer if target == "checkpoint" else StateWriter
    name = {"save": "save", "fold": "tidy", "checkpoint": "_checkpoint"}[target]
    begin = getattr(owner, name)

    def begun(*what: Any) -> Any:
        say("target")
        return begin(*what)

    setattr(owner, name, begun)
    return Limits(save_seconds=0.01)


def child(
    store: Path,
    model: FittedModel,
    again: dict[str, tuple[int, int]],
    first: int,
    name: str,
    pipe: int,
    target: str,
) -> None:
    """Send until killed."""

    def say(line: str) -> None:
        os.write(pipe, (line + "\n").encode())  # unbuffered: short writes to a pipe are atomic

    limits = Limits() if target == TARGETS[0] else busy(target, say)
    engine = Engine.open(SqliteStore(store), model, limits=limits)
    lock, free = threading.Lock(), [first]  # the number of the next event

    def send(key: str, begin: int, count: int) -> None:
        say(f"sent {key} {begin} {count}")
        engine.submit(events_of(begin, count), IdempotencyKey(key, key.encode())).result()
        say(f"done {key}")

    def work(thread: int) -> None:
        rng = random.Random(f"{name} {thread}")
        for n in range(sys.maxsize):
            with lock:
                count = rng.choice(SIZES)
                begin = free[0]
                free[0] += count
            send(f"{name}-{thread}-{n}", begin, count)

    for key, what in again.items():
        send(key, *what)
    for thread in range(3):
        threading.Thread(target=work, args=(thread,), daemon=True).start()
    time.sleep(60)  # the parent kills the child long before


def one_round(store: Path, run: Path, sent: Sent, number: int, rng: random.Random, target: str) -> bool:
    """Start a child, kill it, and record its reports. Returns whether the kill followed the target."""
    first = max((begin + count for begin, count in sent.submissions.values()), default=0)
    model = load(run)  # before the fork: a child must not use objects with threads
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child(store, model, sent.unanswered(), first, f"r{number}", writing, target)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    killer = threading.Timer(rng.uniform(0.0, 0.8), os.kill, (process, signal.SIGKILL))
    if target == TARGETS[0] and rng.random() < 0.25:
        killer.start()  # while the child opens the store; otherwise once it writes
    hits, wait = 0, rng.randrange(1, 12)  # the time of the target that counts
    with os.fdopen(reading) as lines:
        for line in lines:
            if line == "target\n":
                hits += 1
                if hits == wait:
                    time.sleep(rng.uniform(0.0, AIM))
                    os.kill(process, signal.SIGKILL)
                continue
            sent.hear(line)
            if target == TARGETS[0] and not killer.is_alive() and not killer.finished.is_set():
                killer.start()
    killer.cancel()
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status), "the child was not killed but failed"
    return hits >= wait


def check(store: Path, run: Path, sent: Sent) -> int:
    """Check the file; returns its number of events."""
    with SqliteStore(store) as opened:
        assert (findings := opened.verify()) == [], findings
        if opened.is_empty:  # killed before the store was filled
            assert not sent.acknowledged
            return 0
        contents = opened.load()
    numbers = (contents.events.times - START).astype(np.int64)
    there = set(numbers.tolist())
    assert len(there) == len(numbers), "an event was stored twice"
    for key, (begin, count) in sent.submissions.items():
        found = sum(number in there for number in range(begin, begin + count))
        assert found in (0, count), f"{key} is there in part: {found} of {count}"
        assert found or key not in sent.acknowledged, f"{key} was acknowledged and is lost"
    online = ServingState(load(run), contents)
    online.catch_up(contents.event_blocks[contents.applied :], contents.applied)  # as an engine does when it opens
    offline = load(run).recommender
    times = np.maximum.accumulate(np.maximum(contents.events.times, contents.clock))
    whole = Events(contents.events.users, contents.events.items, times)
    for begin, end in zip(contents.blocks[:-1], contents.blocks[1:], strict=True):
        offline.observe(whole[begin:end])
    assert digest(online.recommender) == digest(offline), "the state differs from an offline replay"
    return len(numbers)


def digest(recommender: Recommender) -> str:
    """The hash of a whole state."""
    state = sorted(recommender.state().items())
    return hashlib.sha256(b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in state)).hexdigest()


def cut_off_saves(store: Path) -> bool:
    """Whether the file has a part of a save that was not completed."""
    with closing(apsw.Connection(str(store))) as connection:
        try:
            counters = connection.execute("SELECT value FROM meta WHERE name = 'counters'").fetchall()
            complete = json.loads(str(counters[0][0]))["saved"] if counters else 0
            return bool(connection.execute("SELECT 1 FROM saves WHERE row >= ?", (complete,)).fetchall())
        except apsw.SQLError:  # killed before there were tables
            return False


def rounds(folder: Path, count: int, seed: int) -> Iterator[Round]:
    """Kill and check, round by round."""
    log = synthetic_log(2_000, n_users=80, n_items=60, seed=1).log
    for model, settings in TINY.items():
        train(split_log(log), model, folder / model, settings)
    rng = random.Random(seed)
    for number in range(count):
        if number % NEW_STORE == 0:
            sent, store = Sent(), folder / f"{number}.sqlite"
            target = TARGETS[number // NEW_STORE % len(TARGETS)]
            run = folder / [*TINY][number // NEW_STORE // len(TARGETS) % len(TINY)]
        aimed = one_round(store, run, sent, number, rng, target)
        incomplete = cut_off_saves(store)
        events = check(store, run, sent) if sent.submissions or store.exists() else 0
        yield Round(sent, events, target if aimed else TARGETS[0], incomplete)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    began, totals = time.time(), np.zeros(3, dtype=np.int64)
    targets = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(rounds(Path(folder), asked.rounds, asked.seed), start=1):
            totals[1] += len(one.sent.unanswered())
            targets[one.target] += 1
            targets["incomplete saves left"] += one.cut_off_save
            if number % NEW_STORE == 0 or number == asked.rounds:
                totals[[0, 2]] += len(one.sent.acknowledged), one.events
                print(
                    f"{number} kills: {totals[0]:,} submissions acknowledged, {totals[1]:,} cut off, {totals[2]:,}"
                    " events; nothing lost, nothing twice, all states equal",
                    flush=True,
                )
    print(", ".join(f"{what}: {count}" for what, count in targets.items()))
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
