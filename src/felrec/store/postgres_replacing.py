"""Write a whole store into a PostgreSQL database, where it appears once it is complete and verified."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from felrec.errors import StoreDamaged, StoreError
from felrec.store.postgres import NAMESPACE, PostgresStore
from felrec.store.postgres_connecting import check_namespace, without_secrets
from felrec.store.postgres_schema import unfinished_namespace


@contextmanager
def new_namespace(address: str, namespace: str | None) -> Iterator[PostgresStore]:
    """A store to fill. Once the block has ended and the store is verified it is that of the namespace.

    It is filled in a schema beside, which then gets the name: a kill leaves only that schema, and the next attempt
    removes it.
    """
    wanted = check_namespace(namespace or NAMESPACE)
    store = PostgresStore.empty(address, unfinished_namespace(wanted))
    try:
        _refuse_occupied(store, address, wanted)
        yield store
        _verify(store)
        _refuse_occupied(store, address, wanted)
        store.publish(wanted)
    except BaseException:
        with suppress(StoreError, StoreDamaged):
            store.discard()
        store.close()
        raise


@contextmanager
def replaced_namespace(old: PostgresStore, keep: str | None) -> Iterator[PostgresStore]:
    """A store to fill. Once the block has ended and the store is verified it takes the place of the old one.

    That stays under the name `keep`, if given. Both are closed then. A kill leaves only a schema beside, as above.
    """
    new = old.beside()
    try:
        yield new
        _verify(new)
        old.give_way(new, keep)
    except BaseException:
        with suppress(StoreError, StoreDamaged):
            new.discard()
        new.close()
        raise


def _verify(store: PostgresStore) -> None:
    if findings := store.verify():
        raise StoreDamaged(f"{store.name}: the new store is damaged, so nothing was changed ({findings[0]})")


def _refuse_occupied(store: PostgresStore, address: str, namespace: str) -> None:
    if store.occupied(namespace):
        raise StoreError(
            f'{without_secrets(address)} has a store or other tables in "{namespace}"; choose another --namespace, or'
            f' remove them first: DROP SCHEMA "{namespace}" CASCADE'
        )
