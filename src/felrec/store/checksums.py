"""Checksums of rows. They include the key, so that a row in the wrong place is detected too."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def of_row(row: int, content: bytes) -> int:
    """The checksum of a row with a number."""
    return zlib.crc32(content, row & 0xFFFFFFFF)


def of_name(name: str | bytes, content: str) -> int:
    """The checksum of an entry with a name."""
    key = name.encode() if isinstance(name, str) else name
    return zlib.crc32(content.encode(), zlib.crc32(key))


def encode_rows(values: NDArray[np.generic]) -> list[bytes]:
    """The bytes of each row of an array, little-endian."""
    rows = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    size = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    whole = rows.tobytes()
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def to_json(value: Any) -> str:
    """Canonical JSON: the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
