"""Commands and changes as bytes. Columns are numpy arrays, which msgspec does not know."""

from __future__ import annotations

from typing import Any, TypeVar, get_origin

import msgspec
import numpy as np

T = TypeVar("T")


def encode(thing: object) -> bytes:
    """Encode dataclasses, structs, containers and arrays.

    >>> decode(encode(np.array([1.5, 2.0])), np.ndarray)
    array([1.5, 2. ])
    """
    return msgspec.msgpack.encode(thing, enc_hook=_array_as_bytes)


def decode(body: bytes, kind: type[T]) -> T:
    """The inverse of `encode`."""
    return msgspec.msgpack.decode(body, type=kind, dec_hook=_array_of_bytes)


def _array_as_bytes(thing: object) -> object:
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape, thing.tobytes()
    raise NotImplementedError(f"cannot encode {type(thing).__name__}")  # as msgspec asks of such a hook


def _array_of_bytes(kind: type, given: Any) -> object:
    if (get_origin(kind) or kind) is np.ndarray:
        dtype, shape, values = given
        return np.frombuffer(values, dtype=dtype).reshape(shape).copy()
    raise NotImplementedError(f"cannot decode {kind}")  # as above
