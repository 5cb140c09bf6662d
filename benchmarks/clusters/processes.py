"""Processes of a cluster, forked from this one: each has a member, does what it is told, and may send events itself."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from clusters.world import LIMITS, Place, events_of
from felrec.data.events import EventColumns
from felrec.errors import EngineError, StoreError
from felrec.fitted import FittedModel
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import IdempotencyKey

SIZES = (1, 1, 1, 5, 20, 40, 300)  # events of a submission; the last one is cut into blocks
PAUSE = 0.02  # seconds between two submissions of a thread


@dataclass
class Sent:
    """Submissions by key: number of the first event and of events, when they were sent, and when acknowledged."""

    submissions: dict[str, tuple[int, int]] = field(default_factory=dict)
    sent_at: dict[str, float] = field(default_factory=dict)
    done_at: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    _free: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def numbers(self, size: int) -> int:
        """The first of so many unused numbers of events."""
        with self._lock:
            self._free += size
            return self._free - size

    def unanswered(self) -> dict[str, tuple[int, int]]:
        """Submissions that must be sent again."""
        return {key: what for key, what in self.submissions.items() if key not in self.done_at}


class Process:
    """A process with a member of a cluster."""

    def __init__(self, number: int, place: Place, model: FittedModel, sent: Sent, limits: Limits = LIMITS) -> None:
        self.number, self._sent = number, sent
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                _end_with_parent()
                ours.close()
                _Child(theirs, place, model, limits).run()
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        theirs.close()
        self._in, self._out, self._lock = ours.makefile("r"), ours.makefile("w"), threading.Lock()
        self._answers: dict[int, Any] = {}
        self._answered, self._asked = threading.Condition(), 0
        self.gone = False
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, what: str, *values: Any, seconds: float = 60.0) -> Any:
        """Have something done and wait for the answer; None if the process is gone."""
        with self._lock:
            self._asked += 1
            number = self._asked
            with suppress(OSError, ValueError):
                self._out.write(json.dumps([number, what, *values]) + "\n")
                self._out.flush()
        with self._answered:
            if not self._answered.wait_for(lambda: number in self._answers or self.gone, seconds):
                raise TimeoutError(f"process {self.number} did not answer: {what}")
            return self._answers.pop(number, None)

    def send_events(self, threads: int, again: dict[str, tuple[int, int]] | None = None) -> None:
        """Let it send events until `rest`; first those that another process got no answer for."""
        self.ask("send", threads, list((again or {}).items()))

    def kill(self) -> float:
        """End it at once; returns when that was."""
        now = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return now

    def signal(self, number: signal.Signals) -> None:
        """Stop or continue it."""
        os.kill(self.pid, number)

    def stop(self) -> None:
        """Close it."""
        self.ask("stop")
        os.waitpid(self.pid, 0)

    def _listen(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._in:
                self._hear(json.loads(line))
        with self._answered:
            self.gone = True
            self._answered.notify_all()

    def _hear(self, said: list[Any]) -> None:
        match said:
            case ["sent", key, first, size, at]:
                self._sent.submissions[key] = first, size
                self._sent.sent_at.setdefault(key, at)
            case ["done", key, at]:
                self._sent.done_at[key] = at
            case ["numbers", number, size]:
                with self._lock:
                    self._out.write(json.dumps([number, "given", self._sent.numbers(size)]) + "\n")
                    self._out.flush()
            case ["error", text]:
                self._sent.errors.append(text)
            case [int(number), answer]:
                with self._answered:
                    self._answers[number] = answer
                    self._answered.notify_all()


def _end_with_parent() -> None:
    """Linux kills this process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class _Child:
    """What runs in the process."""

    def __init__(self, link: socket.socket, place: Place, model: FittedModel, limits: Limits) -> None:
        self._in, self._out, self._lock = link.makefile("r"), link.makefile("w"), threading.Lock()
        self._member = Member.open(place.open(), model, limits=limits)
        self._sending, self._threads = threading.Event(), list[threading.Thread]()
        self._keys = count()
        self._numbers, self._given = threading.Condition(), dict[int, int]()

    def run(self) -> None:
        for line in self._in:
            number, what, *values = json.loads(line)
            if what == "given":
                with self._numbers:
                    self._given[number] = values[0]
                    self._numbers.notify_all()
                continue
            if what == "stop":
                self._member.close()
                self._say(number, True)
                return
            threading.Thread(target=self._do, args=(number, what, values), daemon=True).start()

    def _say(self, *what: Any) -> None:
        with self._lock:
            self._out.write(json.dumps(what) + "\n")
            self._out.flush()

    def _do(self, number: int, what: str, values: list[Any]) -> None:
        try:
            answer = getattr(self, f"_do_{what}")(*values)
        except (EngineError, StoreError) as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        self._say(number, answer)

    def _do_health(self) -> dict[str, Any]:
        health = self._member.health()
        assert health.membership is not None
        return {**vars(health.membership), "ready": health.ready, "journal": health.journal}

    def _do_digest(self) -> str:
        state = sorted(self._member._state.recommender.state().items())
        return hashlib.sha256(b"".join(name.encode() + rows.numpy().tobytes() for name, rows in state)).hexdigest()

    def _do_post(self, user: str, item: str) -> float:
        """Post one event; returns when that was begun."""
        begun = time.monotonic()
        self._member.submit(EventColumns.of([user], [item], [None])).result(30)
        return begun

    def _do_recommends(self, user: str, item: str) -> float:
        """Wait until an item is recommended; returns when that was."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if any(one.id == item for one in self._member.recommend(user, 1, candidates=[item]).items):
                return time.monotonic()
            time.sleep(0.001)
        raise TimeoutError(item)

    def _do_read(self) -> bool:
        return bool(self._member.recommend("u1", 10).items)

    def _do_send(self, threads: int, again: list[tuple[str, tuple[int, int]]]) -> None:
        self._sending.set()
        for thread in range(threads):
            share = again[thread::threads]
            self._threads.append(threading.Thread(target=self._send, args=(share,), daemon=True))
            self._threads[-1].start()

    def _do_rest(self) -> None:
        """Send nothing more; what was sent is answered by then."""
        self._sending.clear()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _send(self, again: list[tuple[str, tuple[int, int]]]) -> None:
        for key, (first, size) in again:
            self._submit(key, first, size)
        while self._sending.is_set():
            number = next(self._keys)
            size = SIZES[number % len(SIZES)]
            self._submit(f"{os.getpid()}-{number}", self._first(size), size)
            time.sleep(PAUSE)

    def _first(self, size: int) -> int:
        asked = -threading.get_ident()
        self._say("numbers", asked, size)
        with self._numbers:
            self._numbers.wait_for(lambda: asked in self._given)
            return self._given.pop(asked)

    def _submit(self, key: str, first: int, size: int) -> None:
        """Submit events until they are acknowledged, always with the same key."""
        self._say("sent", key, first, size, time.monotonic())
        while True:
            try:
                self._member.submit(events_of(first, size), IdempotencyKey(key, key.encode())).result()
                break
            except (EngineError, StoreError) as error:
                self._say("error", type(error).__name__)
                time.sleep(0.1)
        self._say("done", key, time.monotonic())


@dataclass
class Cluster:
    """Some processes with one store."""

    place: Place
    model: FittedModel
    limits: Limits = LIMITS
    sent: Sent = field(default_factory=Sent)
    processes: list[Process] = field(default_factory=list)
    _started: int = 0

    def start(self, place: Place | None = None) -> Process:
        """Start one more."""
        sys.stdout.flush()
        process = Process(self._started, place or self.place, self.model, self.sent, self.limits)
        self._started += 1
        self.processes.append(process)
        return process

    def writer(self, seconds: float = 120.0) -> Process:
        """The process that writes; waits until there is one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for process in self.processes:
                health = process.ask("health")
                if health and health["role"] == "writer":
                    return process
            time.sleep(0.02)
        raise TimeoutError("no process writes")

    def settle(self, seconds: float = 240.0) -> None:
        """Wait until all have the same events; on a busy machine a process takes its time to start."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            journals = {(process.ask("health") or {}).get("journal") for process in self.processes}
            if len(journals) == 1:
                return
            time.sleep(0.05)
        raise TimeoutError("some processes do not catch up")

    def quiet(self) -> None:
        """Let all send nothing more, and wait until they have the same events."""
        for process in self.processes:
            process.ask("rest", seconds=120)
        self.settle()

    def stop(self) -> None:
        """Close all; those that write last, so that none takes over only to be closed."""
        for process in sorted(self.processes, key=lambda one: (one.ask("health") or {}).get("role", "")):
            process.stop()
