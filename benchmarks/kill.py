"""Repeatedly kill an engine while it writes: `python benchmarks/kill.py --rounds 100`.

A child process submits events from three threads and reports through a pipe what it sends and what is acknowledged.
The parent kills it with SIGKILL at a random moment and checks the file. The next child first repeats the submissions
that were not acknowledged, with the same idempotency keys. After every round:

* no acknowledged event is missing, no event is stored twice, no submission is stored in part;
* the store verifies;
* an engine that opens the file has, byte for byte, the state of an offline replay of the journal.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from felrec import load, split_log, synthetic_log, train
from felrec.data.events import EventColumns, Events
from felrec.fitted import FittedModel
from felrec.recommender import Recommender
from felrec.service.engine.engine import Engine
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import IdempotencyKey
from felrec.store.sqlite import SqliteStore

TINY = {"epochs": 1, "width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "history_length": 16, "queue_size": 64}
SIZES = (1, 1, 1, 1, 5, 20, 40, 100, 100, 700)  # events of a submission: single ones, posts, one cut into blocks
NEW_STORE = 5  # rounds after which a new store is used, so that replays stay short
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


def events_of(first: int, count: int) -> EventColumns:
    """The same events for the same numbers."""
    rng = random.Random(first)
    pairs = [(f"u{rng.randrange(3_000)}", f"i{rng.randrange(1_000)}") for _ in range(count)]
    times = START + first + np.arange(count, dtype=np.float64)
    return EventColumns([user for user, _ in pairs], [item for _, item in pairs], times)


def child(store: Path, model: FittedModel, again: dict[str, tuple[int, int]], first: int, name: str, pipe: int) -> None:
    """Send until killed."""
    engine = Engine.open(SqliteStore(store), model)
    lock, free = threading.Lock(), [first]  # the number of the next event

    def say(line: str) -> None:
        os.write(pipe, (line + "\n").encode())  # unbuffered: short writes to a pipe are atomic

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


def one_round(store: Path, run: Path, sent: Sent, number: int, rng: random.Random) -> None:
    """Start a child, kill it, and record its reports."""
    first = max((begin + count for begin, count in sent.submissions.values()), default=0)
    model = load(run)  # before the fork: a child must not use objects with threads
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child(store, model, sent.unanswered(), first, f"r{number}", writing)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    killer = threading.Timer(rng.uniform(0.0, 0.8), os.kill, (process, signal.SIGKILL))
    if rng.random() < 0.25:
        killer.start()  # while the child opens the store; otherwise once it writes
    with os.fdopen(reading) as lines:
        for line in lines:
            sent.hear(line)
            if not killer.is_alive() and not killer.finished.is_set():
                killer.start()
    killer.cancel()
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status), "the child was not killed but failed"


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


def rounds(folder: Path, count: int, seed: int) -> Iterator[tuple[Sent, int]]:
    """Kill and check, round by round."""
    log = synthetic_log(2_000, n_users=80, n_items=60, seed=1).log
    train(split_log(log), "felrec-q", folder / "run", TINY)
    rng = random.Random(seed)
    for number in range(count):
        if number % NEW_STORE == 0:
            sent, store = Sent(), folder / f"{number}.sqlite"
        one_round(store, folder / "run", sent, number, rng)
        yield sent, check(store, folder / "run", sent) if sent.submissions or store.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    began, totals = time.time(), np.zeros(3, dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:
        for number, (sent, events) in enumerate(rounds(Path(folder), asked.rounds, asked.seed), start=1):
            cut_off = len(sent.unanswered())
            totals[1] += cut_off
            if number % NEW_STORE == 0 or number == asked.rounds:
                totals[[0, 2]] += len(sent.acknowledged), events
                print(
                    f"{number} kills: {totals[0]:,} submissions acknowledged, {totals[1]:,} cut off, {totals[2]:,}"
                    " events; nothing lost, nothing twice, all states equal",
                    flush=True,
                )
    print(f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
