"""Write a store anew beside an old one, and put it in its place once it is complete and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from felrec.errors import StoreDamaged, StoreError
from felrec.files import publish
from felrec.store.file_locks import FileLocks
from felrec.store.location import StoreLocation
from felrec.store.opening import is_address, refuse_namespace, require_psycopg
from felrec.store.protocol import Contents
from felrec.store.replacing import make_way, remove_store, unfinished_name
from felrec.store.sql_store import SqlStore
from felrec.store.sqlite import SqliteStore

_BEFORE = ".before-"  # part of the name of a store that was replaced
_LONGEST = 18  # letters of a namespace that the name of the old one begins with


@dataclass(frozen=True)
class Rewriting:
    """A store that no engine can open meanwhile, and what takes its place."""

    contents: Contents  # without the rows of its state
    kept: str  # the name that it can be kept under
    new_store: Callable[[bool], AbstractContextManager[SqlStore]]  # given whether to keep it; see `new_store` below


@contextmanager
def rewriting(store: StoreLocation) -> Iterator[Rewriting]:
    """A store of either kind to write anew; StoreBusy if an engine has it open."""
    if store.namespace is None:
        path = Path(store.address)
        kept = name_of_old(path)
        with to_rewrite(path) as contents:
            yield Rewriting(contents, str(kept), lambda keep: new_store(path, kept if keep else None))
        return
    from felrec.store.postgres_replacing import replaced_namespace

    namespace = f"{store.namespace[:_LONGEST]}{_BEFORE[1:]}{_now()}"
    with store.open("write") as old:
        assert not isinstance(old, SqliteStore)
        contents = old.load()
        contents.state.clear()
        kept_name = StoreLocation(store.address, namespace).name
        yield Rewriting(contents, kept_name, lambda keep: replaced_namespace(old, namespace if keep else None))


@contextmanager
def to_rewrite(path: Path) -> Iterator[Contents]:
    """What a store has, without the rows of its state, while no engine can open it; StoreBusy if one has it open."""
    if path.is_symlink():
        raise StoreError(f"{path} is a link; give the path of the store itself, which will be replaced")
    _remove_second_names(path)
    SqliteStore(path, "write").close()  # moves what a kill left in the write-ahead log into the file
    with _exclusive(path):
        with SqliteStore(path, "read") as old:
            contents = old.load()
        contents.state.clear()
        yield contents


@contextmanager
def new_store(path: Path, keep: Path | None = None) -> Iterator[SqliteStore]:
    """A store to fill. Once the block has ended and the store is verified it is `path`, in place of what was there.

    What was there stays under the name `keep`, if given. Until the very end nothing changes: a kill leaves only an
    incomplete file beside, which the next attempt removes. To replace a store needs `to_rewrite`.
    """
    unfinished = unfinished_name(path)
    with _exclusive(unfinished):  # another process may be writing it
        remove_store(unfinished)
    try:
        with SqliteStore(unfinished) as store:
            yield store
        with SqliteStore(unfinished, "read") as store:
            findings = store.verify()
        if findings:
            raise StoreDamaged(f"{path}: the new store is damaged, so nothing was changed ({findings[0]})")
        if path.exists():
            make_way(path, unfinished, keep)
        publish(unfinished, path)
    finally:
        remove_store(unfinished)


@contextmanager
def store_at(place: str, namespace: str | None = None) -> Iterator[SqlStore]:
    """A store to fill at a path or an address that has none. It appears once the block has ended and it is verified."""
    if is_address(place):
        require_psycopg()
        from felrec.store.postgres_replacing import new_namespace

        with new_namespace(place, namespace) as new:
            yield new
        return
    refuse_namespace(place, namespace)
    if Path(place).exists():
        raise StoreError(f"{place} exists; give the new store another name")
    with new_store(Path(place)) as file:
        yield file


def name_of_old(path: Path) -> Path:
    """A new name, with the time, under which a store that is about to be replaced can be kept."""
    return path.with_name(f"{path.stem}{_BEFORE}{_now()}{path.suffix}")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Keep engines from opening a store, which need not exist yet; StoreBusy if one has it open."""
    locks = FileLocks(path)
    try:
        locks.lock_beside()
        if path.exists():
            locks.lock_file()
        yield
    finally:
        locks.close()


def _remove_second_names(path: Path) -> None:
    """Undo `make_way` if a kill came right after it: a store with two names is not opened."""
    for left in path.parent.glob(f"{path.stem}{_BEFORE}*{path.suffix}"):
        if path.exists() and left.samefile(path):
            left.unlink()
