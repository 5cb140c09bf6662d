"""Several processes with one listening socket: a parent starts them again when they die, and stops them together."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from types import FrameType

from felrec.service.http.logs import note

LONGEST = 30.0  # seconds between two attempts to start a process that keeps dying
STEADY = 10.0  # a process that lived for so long is started again at once
PATIENCE = 60.0  # seconds for all to stop, before they are killed
WRONG = 2  # the exit code of a process that cannot work: its message says why


def split_into(count: int) -> int:
    """Fork so many processes. Returns in each of them, with its number; in the parent it ends with their exit code.

    Call it before there are threads. A process that dies is started again, after a pause that grows.
    """
    return _Parent(count).run()


@dataclass
class _Parent:
    count: int
    children: dict[int, tuple[int, float]] = field(default_factory=dict)  # by process: its number, and when it began
    stopping: threading.Event = field(default_factory=threading.Event)
    code: int = 0

    def run(self) -> int:
        self.alive = os.pipe()  # children notice the end of the parent by it
        for caught in (signal.SIGTERM, signal.SIGINT):
            signal.signal(caught, self._stop)
        for number in range(self.count):
            if self._fork(number):
                return number
        pauses = [0.0] * self.count
        while self.children:
            process, status = os.wait()
            number, begun = self.children.pop(process)
            code = os.waitstatus_to_exitcode(status)
            if self.stopping.is_set():
                self.code = self.code or max(0, code)
                continue
            if code == WRONG and time.monotonic() < begun + STEADY:  # another attempt would end in the same way
                self.code = WRONG
                self._stop()
                continue
            pauses[number] = 0.0 if time.monotonic() > begun + STEADY else min(LONGEST, 2 * pauses[number] or 0.5)
            note("a process died and is started again", level=40, process=process, code=code, pause=pauses[number])
            if not self.stopping.wait(pauses[number]) and self._fork(number):
                return number
        raise SystemExit(self.code)

    def _fork(self, number: int) -> bool:
        """Start a process; returns whether this is it."""
        process = os.fork()
        if process:
            self.children[process] = number, time.monotonic()
            return False
        os.setsid()  # a terminal interrupts the parent alone, which then stops the others
        for caught in (signal.SIGTERM, signal.SIGINT):
            signal.signal(caught, signal.SIG_DFL)
        os.close(self.alive[1])
        threading.Thread(target=self._stop_with_parent, name="felrec-parent", daemon=True).start()
        return True

    def _stop_with_parent(self) -> None:
        os.read(self.alive[0], 1)  # nothing is ever written
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self, caught: int = 0, frame: FrameType | None = None) -> None:
        again = self.stopping.is_set()
        self.stopping.set()
        for process in list(self.children):
            os.kill(process, signal.SIGKILL if again and caught == signal.SIGINT else signal.SIGTERM)
