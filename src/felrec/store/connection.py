"""What the statements of a store need of a connection to a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol


class Found(Protocol):
    """The rows that a statement found."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]:
        """All that have not been read yet."""
        ...


class Connection(Protocol):
    """A connection to SQLite, or to something that understands the same statements. `?` is a binding."""

    def execute(self, statement: str, bindings: tuple[Any, ...] = ..., /) -> Found:
        """Execute a statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[tuple[Any, ...]], /) -> object:
        """Execute a statement once for each row of bindings."""
        ...
