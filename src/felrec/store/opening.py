"""Open the right kind of store for a path or an address."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from felrec.errors import StoreError, how_to_install
from felrec.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from felrec.store.postgres import PostgresStore


def is_address(store: str | Path) -> bool:
    """Whether a store is given by the address of a server rather than a path.

    >>> [is_address(store) for store in ("postgresql:///shop", "postgres://db/shop", "store.sqlite")]
    [True, True, False]
    """
    return str(store).startswith(("postgresql://", "postgres://"))


def open_store(
    store: str | Path,
    mode: Literal["create", "write", "read"] = "create",
    *,
    shared: bool = False,
    namespace: str | None = None,
    listen: bool = True,
) -> SqliteStore | PostgresStore:
    """The store of a file, or of a server for `postgresql://…`."""
    if not is_address(store):
        refuse_namespace(store, namespace)
        return SqliteStore(Path(store), mode, shared=shared)
    require_psycopg()
    from felrec.store.postgres import NAMESPACE, PostgresStore

    return PostgresStore(str(store), mode, namespace=namespace or NAMESPACE, shared=shared, listen=listen)


def refuse_namespace(path: str | Path, namespace: str | None) -> None:
    """Raise StoreError if a namespace is given for a file."""
    if namespace is not None:
        raise StoreError(f"{path}: a file has no namespaces; give each catalogue a file of its own")


def require_psycopg() -> None:
    """Raise StoreError, which says what to install, if a store on a server cannot be opened."""
    if find_spec("psycopg") is None:
        raise StoreError(f"a store on PostgreSQL needs psycopg; {how_to_install('postgresql')}")
