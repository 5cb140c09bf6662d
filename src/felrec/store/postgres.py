"""A store in a PostgreSQL database, for any number of processes on any number of machines."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from felrec.errors import StoreDamaged, StoreError
from felrec.store.postgres_database import Mode, PostgresDatabase
from felrec.store.postgres_schema import unfinished_namespace
from felrec.store.protocol import LET_GO, Contents, Replaceable, Standing
from felrec.store.sql_store import SqlStore

NAMESPACE = "felrec"
_SIZE_FOR = 10.0  # seconds for which a size is good enough
_SIZE = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE relnamespace = to_regnamespace(?)"


class PostgresStore(SqlStore):
    """Mode `create` makes schema and tables if they are missing, `write` needs them, `read` never writes.

    Each namespace is a schema with a store of its own. With `shared` other processes can have it open too, and none
    writes before it leads; see SharedStore. A server that is silent for `patience` seconds is given up, and every later
    call tries it again. `listen` wakes readers by LISTEN and NOTIFY; without it they poll.
    """

    _database: PostgresDatabase
    missing = None  # what the server acknowledged it has

    def __init__(
        self,
        address: str,
        mode: Mode = "create",
        *,
        namespace: str = NAMESPACE,
        shared: bool = False,
        patience: float = 5.0,
        listen: bool = True,
    ) -> None:
        super().__init__(
            PostgresDatabase(address, mode, namespace=namespace, shared=shared, patience=patience, listen=listen)
        )
        self._address, self._namespace, self._size, self._size_until = address, namespace, 0, 0.0
        self._measure()

    @property
    def place(self) -> str:
        """See SharedStore."""
        return self._address

    def backup(self, path: Path) -> None:
        """Refuse: the server has better ways."""
        raise StoreError(
            f"{self.name} is on a server: back it up there, with pg_dump -n {self._namespace} or base backups, or write"
            " its events to a file with felrec export"
        )

    @property
    def alone(self) -> bool:
        """See Replaceable."""
        return not self._database.shared

    def load(self) -> Contents:
        """Read everything, and again if users and items were let go meanwhile.

        What a transaction reads of a table is as of its beginning, but which table has a name is as of now.
        """
        while True:
            before = self.notes().get(LET_GO)
            try:
                contents = super().load()
            except StoreDamaged:
                if self.notes().get(LET_GO) == before:
                    raise
            else:
                if self.notes().get(LET_GO) == before:
                    return contents

    @classmethod
    def empty(cls, address: str, namespace: str) -> PostgresStore:
        """A store to fill; what an earlier attempt left there is removed. StoreBusy if another process fills it."""
        store = cls(address, namespace=namespace)
        if not store.is_empty:
            store.discard()
            store = cls(address, namespace=namespace)
        return store

    def beside(self) -> PostgresStore:
        """See Replaceable. Needs the right to create a schema."""
        return PostgresStore.empty(self._address, unfinished_namespace(self._namespace))

    def become(self, other: Replaceable, change: bytes | None = None) -> None:
        """See Replaceable."""
        assert isinstance(other, PostgresStore)
        self.take_rows(other, change)
        other.close()

    def occupied(self, namespace: str) -> bool:
        """Whether a namespace of the same database has tables, be they of a store or not."""
        return self._database.has_tables_in(namespace)

    def publish(self, namespace: str) -> None:
        """Close the store and make it that of another namespace, which must have no tables, in one step."""
        self._database.rename(namespace)
        self.close()

    def give_way(self, other: PostgresStore, keep: str | None) -> None:
        """Close both stores and make the other one that of this namespace, in one step.

        This one, which no other process may have open, becomes that of the namespace `keep`, or is removed.
        """
        counters = replace(other._database.counters, change=self._database.counters.change + 1)
        with other._database.transaction(counters):  # a process that was away for long loads everything again
            pass
        self._database.give_way(other._database, keep)
        other.close()
        self.close()

    def discard(self) -> None:
        """Remove the store and close it."""
        try:
            self._database.drop()
        finally:
            self.close()

    def standing(self) -> Standing:
        """Where the log is now. Any thread."""
        standing = super().standing()
        if time.monotonic() > self._size_until:
            self._measure()
        return standing

    def size(self) -> int:
        """Bytes on the server, as of a moment ago."""
        return self._size

    def _measure(self) -> None:
        with self._database.looking() as connection:
            self._size = int(connection.execute(_SIZE, (f'"{self._namespace}"',)).fetchall()[0][0] or 0)
        self._size_until = time.monotonic() + _SIZE_FOR
