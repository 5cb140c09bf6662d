"""What an id and a time may be. A ValueError says in words why one may not."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from felrec.data.reading.timestamps import MILLISECONDS_FROM
from felrec.service.engine.limits import Limits

LIMITS = Limits()
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def read_id(given: object, name: str = "id") -> str:
    """Check an id of a user or an item; a whole number is taken as its digits.

    >>> read_id(42)
    '42'
    """
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < 10**64:
        return str(given)
    if not isinstance(given, str) or not given:
        raise ValueError(f"{name}: give a string that is not empty, or a whole number")
    if len(given) > LIMITS.id_characters:
        raise ValueError(f"{name}: longer than {LIMITS.id_characters} characters")
    try:
        size = len(given.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name}: not valid Unicode (a lone surrogate)") from None
    if size > LIMITS.id_bytes:
        raise ValueError(f"{name}: longer than {LIMITS.id_bytes} bytes")
    if CONTROL.search(given):
        raise ValueError(f"{name}: holds a control character")
    return given


def read_time(given: object, now: float) -> float | None:
    """Seconds since 1970, from a number or from ISO 8601 (UTC if it names no zone); None stays None, for now."""
    if given is None:
        return None
    if isinstance(given, str):
        seconds = _iso(given)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        seconds = float(given) if abs(given) < 1e18 else math.inf
    else:
        raise ValueError("timestamp: give seconds since 1970, or ISO 8601")
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("timestamp: give seconds since 1970 that are finite and not negative")
    if seconds >= MILLISECONDS_FROM:
        raise ValueError("timestamp: lies after the year 5000; give seconds, not milliseconds")
    if seconds > now + LIMITS.future_seconds:
        raise ValueError(f"timestamp: more than {LIMITS.future_seconds:.0f} s in the future; set the sender's clock")
    return seconds


def _iso(given: str) -> float:
    try:
        moment = datetime.fromisoformat(given)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("timestamp: not ISO 8601; write it as 2026-01-31T12:00:00Z") from None
