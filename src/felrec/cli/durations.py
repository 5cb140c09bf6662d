"""Durations on the command line."""

from __future__ import annotations

import re

from felrec.errors import ConfigError

_SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def read_duration(given: str, option: str) -> float:
    """A duration in seconds.

    >>> read_duration("400d", "--after"), read_duration("1.5h", "--after")
    (34560000.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([hdw])", given)
    if found is None or not float(found[1]):
        raise ConfigError(f"{option} {given}: give hours, days or weeks, such as 36h, 400d or 52w")
    return float(found[1]) * _SECONDS[found[2]]
