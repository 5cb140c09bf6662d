"""Stores without a model: rows of bytes and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from felrec.data.events import Events, RowChange
from felrec.store.protocol import Base, Batch, Contents, Identity, TableSpec
from felrec.store.sqlite import SqliteStore

IDENTITY = Identity("a model", {"width": 3}, "weights", "empty")
TABLES = [TableSpec("vectors", "<f4", (3,)), TableSpec("counts", "<i8", ())]
EMPTY_BASE = Base([], [], np.zeros(0, dtype="<i4,<i4,<i4,<f8"), 0.0, TABLES, {})
ROWS = 40


def begun(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    store.begin(IDENTITY, EMPTY_BASE)
    return store


def rows(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, dtype=np.int32)


def one_block(first: int = 0) -> Batch:
    return Batch(
        first_user=first,
        first_item=first,
        users=[f"user {first}"],
        items=["🦔 Robert'); DROP TABLE users;--" * (first + 1)],
        blocks=[Events.of([first], [first], [5.0])],
    )


def one_row(number: int, value: float = 0.5) -> RowChange:
    """The rows of both tables with a number."""
    vectors = np.full((1, 3), number + value, "<f4")
    return {"vectors": (rows(number), vectors), "counts": (rows(number), np.array([7]))}


def many_rows(value: float, *numbers: int) -> RowChange:
    vectors = np.array([[number + value] * 3 for number in numbers], dtype="<f4").reshape(-1, 3)
    return {"vectors": (rows(*numbers), vectors), "counts": (rows(*numbers), np.full(len(numbers), int(8 * value)))}


def vectors(contents: Contents) -> list[float]:
    """How much each row of the first table is more than its number."""
    more: list[float] = [row[0] - number for number, row in enumerate(contents.state["vectors"].tolist())]
    return more
