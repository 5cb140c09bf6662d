"""Places for stores of each kind, which pass the same tests."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal

from felrec.store.opening import open_store
from felrec.store.sql_store import SqlStore


class Place:
    """Where one store is. It can be opened any number of times, as several processes would, and by another one."""

    def __init__(self, address: str, namespace: str | None, listen: bool = True) -> None:
        self.address, self.namespace, self.listen = address, namespace, listen
        self._opened = ExitStack()

    def __call__(self, mode: Literal["create", "write", "read"] = "create", *, shared: bool = True) -> SqlStore:
        store = open_store(self.address, mode, shared=shared, namespace=self.namespace, listen=self.listen)
        return self._opened.enter_context(store)

    def alone(self, mode: Literal["create", "write", "read"] = "create") -> SqlStore:
        """For the engine that nobody shares it with."""
        return self(mode, shared=False)

    def close(self) -> None:
        """Close all that is open."""
        self._opened.close()
