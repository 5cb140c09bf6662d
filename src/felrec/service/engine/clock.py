"""The time of a service: the machine's clock as long as it does not jump."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

_log = logging.getLogger(__name__)

JUMP_SECONDS = 300.0  # smaller corrections of the machine's clock are followed
_RESTART = "set the machine's clock and restart the service"

Seconds = Callable[[], float]


def since_boot() -> float:
    """Seconds that have passed, also while the machine slept where the system counts them."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """Follows the machine's clock, but not a jump: then it goes on from the time before, by the seconds that pass.

    One event with the time of a wrong clock would make all later events late. If the machine's clock comes back, this
    one follows it again.

    >>> wall, passed = iter([5_000.0, 5_010.0, 9e9, 5_030.0]), iter([0.0, 10.0, 20.0, 30.0])
    >>> clock = SteadyClock(lambda: next(wall), lambda: next(passed))
    >>> clock.now(), clock.now(), clock.now()
    (5010.0, 5020.0, 5030.0)
    """

    def __init__(self, wall: Seconds = time.time, passed: Seconds = since_boot) -> None:
        self._wall, self._passed = wall, passed
        self._offset = wall() - passed()
        self.jump = 0.0  # seconds that the machine's clock is ahead by, if it has jumped

    def now(self) -> float:
        """Seconds since 1970. May be called from any thread."""
        wall, passed = self._wall(), self._passed()
        ahead = wall - passed - self._offset
        if abs(ahead) <= JUMP_SECONDS:
            self._offset, ahead = wall - passed, 0.0
        if bool(ahead) != bool(self.jump):
            _log.warning(_jumped(ahead) if ahead else "the machine's clock is back; its time is used again")
        self.jump = ahead
        return passed + self._offset

    def problem(self, newest: float, tolerance: float) -> str | None:
        """What is wrong with the time, and what to do; `newest` is the time of the newest event."""
        now = self.now()
        if self.jump:
            return _jumped(self.jump)
        return _from_the_future(newest, now) if newest > now + tolerance else None


def _jumped(ahead: float) -> str:
    jump = f"{abs(ahead):,.0f} s {'ahead' if ahead > 0 else 'back'}"
    return f"the machine's clock has jumped {jump}; the time before the jump is continued: {_RESTART}"


def _from_the_future(newest: float, now: float) -> str:
    latest = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return (
        f"the newest event is {newest - now:,.0f} s ahead of the machine's clock, so all new events are late:"
        f" {_RESTART}; if the clock is right, rebuild the store with felrec replay --latest {latest}"
    )
