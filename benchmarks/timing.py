"""Time two implementations of the same work in turns, so that other load on the machine cancels out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import machine
import numpy as np
from machine import calibration_seconds

Lap = Callable[[int], int]
"""Does portion number n of the work and returns its number of events."""


@dataclass
class Timings:
    """Seconds per event of each lap; both sides and the calibration loop are timed within the same minute."""

    ours: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)  # empty without a reference
    calibration: list[float] = field(default_factory=list)

    @property
    def ours_rate(self) -> float:
        """Events per second."""
        return float(1 / np.median(self.ours))

    @property
    def reference_rate(self) -> float | None:
        """Events per second."""
        return float(1 / np.median(self.reference)) if self.reference else None

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is: the median over laps."""
        return float(np.median(np.divide(self.reference, self.ours))) if self.reference else None

    @property
    def cost(self) -> float:
        """Calibration loops per 1,000 events: the median over laps."""
        return float(1000 * np.median(np.divide(self.ours, self.calibration)))


def race(ours: Lap, reference: Lap | None, laps: int) -> Timings:
    """Run both in turns, after one warm-up lap each; the order alternates."""
    timings = Timings()
    for lap in range(laps + 1):
        calibration = calibration_seconds()
        sides = [(ours, timings.ours)]
        if reference is not None:
            sides.append((reference, timings.reference))
        for run, seconds in sides if lap % 2 else sides[::-1]:
            measured = seconds_per_event(run, lap)
            if lap:
                seconds.append(measured)
        if lap:
            timings.calibration.append(calibration)
    return timings


def over(run: Callable[[int, int], int], start: int, size: int) -> Lap:
    """Laps over consecutive ranges of `size` events; the first one, from `start`, is the warm-up."""
    return lambda lap: run(start + lap * size, start + (lap + 1) * size)


def seconds_per_event(run: Lap, lap: int) -> float:
    """Time one lap."""
    began = machine.clock()
    events = run(lap)
    return (machine.clock() - began) / events
