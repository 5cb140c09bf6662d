"""Where a store is, for those who open it later or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from felrec.errors import StoreMissing
from felrec.store.opening import is_address, open_store, refuse_namespace, require_psycopg
from felrec.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from felrec.store.postgres import PostgresStore


@dataclass(frozen=True)
class StoreLocation:
    """A file, or a namespace of a database."""

    address: str  # the absolute path, or postgresql://…
    namespace: str | None = None  # None: it is a file

    @classmethod
    def of(cls, address: str | Path, namespace: str | None = None) -> StoreLocation:
        """Of what a user gives; StoreError if a file has a namespace, or a database cannot be opened here."""
        if not is_address(address):
            refuse_namespace(address, namespace)
            return cls(str(Path(address).resolve()))
        require_psycopg()
        from felrec.store.postgres import NAMESPACE

        return cls(str(address), namespace or NAMESPACE)

    @property
    def name(self) -> str:
        """The name that the store has, for messages: without secrets."""
        if self.namespace is None:
            return self.address
        from felrec.store.postgres_connecting import without_secrets

        return f"{without_secrets(self.address)} ({self.namespace})"

    def open(
        self, mode: Literal["create", "write", "read"] = "create", *, shared: bool = False
    ) -> SqliteStore | PostgresStore:
        """Open the store."""
        return open_store(self.address, mode, shared=shared, namespace=self.namespace)

    @property
    def exists(self) -> bool:
        """Whether there is a store."""
        try:
            self.open("read").close()
        except StoreMissing:
            return False
        return True

    def without_password(self) -> StoreLocation:
        """As others may read it."""
        if self.namespace is None:
            return self
        from felrec.store.postgres_connecting import without_password

        return StoreLocation(without_password(self.address), self.namespace)

    def with_password_of(self, address: str) -> StoreLocation:
        """The same, for a process that knows the password of another store, if that is for the same user there."""
        if self.namespace is None or not is_address(address):
            return self
        from felrec.store.postgres_connecting import with_password_of

        return StoreLocation(with_password_of(self.address, address), self.namespace)
