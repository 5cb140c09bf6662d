"""Stores without a model: rows of bytes and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from felrec.data.events import Events
from felrec.store.protocol import Base, Batch, Identity, TableSpec
from felrec.store.sqlite import SqliteStore

IDENTITY = Identity("a model", {"width": 3}, "weights", "empty")
TABLES = [TableSpec("vectors", "<f4", (3,)), TableSpec("counts", "<i8", ())]


def begun(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    store.begin(IDENTITY, Base([], [], np.zeros(0, dtype="<i4,<i4,<i4,<f8"), 0.0, TABLES, {}))
    return store


def rows(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, dtype=np.int32)


def one_block(first: int = 0, applied: int = 1) -> Batch:
    return Batch(
        first_user=first,
        first_item=first,
        users=[f"user {first}"],
        items=["🦔 Robert'); DROP TABLE users;--" * (first + 1)],
        blocks=[Events.of([first], [first], [5.0])],
        state={"vectors": (rows(first), np.full((1, 3), first + 0.5, "<f4")), "counts": (rows(first), np.array([7]))},
        applied=applied,
    )
