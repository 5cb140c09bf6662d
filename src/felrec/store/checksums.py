"""Checksums of rows. They include the key, so that a row in the wrong place is detected too."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

Report = Callable[[str], None]  # receives a problem; raises, or records it so that checking continues


def of_row(row: int, content: bytes) -> int:
    """The checksum of a row with a number."""
    return zlib.crc32(content, row & 0xFFFFFFFF)


def of_name(name: str | bytes, content: str) -> int:
    """The checksum of an entry with a name."""
    key = name.encode() if isinstance(name, str) else name
    return zlib.crc32(content.encode(), zlib.crc32(key))


def to_bytes(value: Any) -> bytes:
    """The bytes of a column; in a damaged file it may have any type."""
    return value if isinstance(value, bytes) else b"" if value is None else str(value).encode()


def to_json(value: Any) -> str:
    """Canonical JSON: the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
