"""A checksum for every row: of its content, begun with its key, so that a row in the wrong place is found too."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def of_row(row: int, content: bytes) -> int:
    """Of something that has a number."""
    return zlib.crc32(content, row & 0xFFFFFFFF)


def of_name(name: str | bytes, content: str) -> int:
    """Of something that has a name."""
    key = name.encode() if isinstance(name, str) else name
    return zlib.crc32(content.encode(), zlib.crc32(key))


def encode_rows(values: NDArray[np.generic]) -> list[bytes]:
    """The bytes of each row of an array, little-endian."""
    rows = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    size = rows.dtype.itemsize * int(np.prod(rows.shape[1:]))
    whole = rows.tobytes()
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def to_json(value: Any) -> str:
    """JSON that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
