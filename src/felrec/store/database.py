"""What a store needs of a database: transactions of its writer, and connections for every other thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NoReturn, Protocol

from felrec.errors import StoreError
from felrec.store.connection import Connection
from felrec.store.leading import Leader
from felrec.store.protocol import TableSpec
from felrec.store.reading import Counters, StateReader

News = Literal["changes", "inbox"]  # tables that somebody may wait for


class Database(Protocol):
    """The tables of one store. Threads wait for one another, and for a whole transaction."""

    name: str  # for messages
    shared: bool  # whether other processes may have it open too
    counters: Counters  # of the writer; those of a process that follows are as old as its last `reading`
    tables: list[TableSpec]
    token: int  # of the lease that this process has or had
    leading: bool  # whether it has it, as far as it knows
    unclean: bool  # old content of an erased user may still be on the disk

    @property
    def connection(self) -> Connection:
        """Of `transaction` and `reading`."""
        ...

    @property
    def state_reader(self) -> StateReader:
        """Reads the state as the database has it."""
        ...

    def transaction(self, counters: Counters, *, durable: bool = True) -> AbstractContextManager[None]:
        """One atomic transaction; the counters are written last and kept in memory only after the commit.

        NotLeader if this process does not lead. One that is not durable becomes so soon, at the latest with the next
        one that is, or is lost as a whole.
        """
        ...

    def taking_from(self, other: Database) -> AbstractContextManager[Callable[[Sequence[str]], None]]:
        """Around `transaction`: what it gives replaces tables by those of another store, which is useless then.

        The other one must have no transaction. StoreBusy if a process reads one of the tables for too long.
        """
        ...

    def reading(self, *, large: bool = False) -> AbstractContextManager[None]:
        """A read transaction: all reads see the same snapshot. `large` results are not kept in memory as a whole."""
        ...

    def refresh(self) -> dict[str, str]:
        """Read counters, tables and all other entries of `meta` again."""
        ...

    def lead(self, token: int) -> None:
        """Begin to write, with a token that the store has already."""
        ...

    def lock_lease(self, connection: Connection) -> None:
        """Within `appending`: let nobody else take or renew the lease before the transaction ends."""
        ...

    def close_inbox(self) -> None:
        """Within `transaction`: wait for appends to the inbox that are under way; others wait until it ends.

        An append that has waited sees what the transaction wrote.
        """
        ...

    def unseat(self, connection: Connection, leader: Leader) -> None:
        """Within `appending`: end what a leader whose lease has ended still has under way."""
        ...

    def appending(self) -> AbstractContextManager[Connection]:
        """A durable transaction that needs no lease. Any thread; they wait for one another."""
        ...

    def looking(self) -> AbstractContextManager[Connection]:
        """A short read transaction. Any thread; they wait for one another."""
        ...

    def version(self) -> int:
        """A number that changes when anything was written; see `wait`. Any thread, as `looking`."""
        ...

    def wait(self, what: News, version: int, seconds: float) -> bool:
        """Wait until there may be such news since this version; False if there are none, or on closing."""
        ...

    def now(self, connection: Connection) -> float:
        """The clock of leases, which all processes share."""
        ...

    @property
    def flushing(self) -> bool:
        """Whether a transaction that is not durable would wait for the disk."""
        ...

    def value(self, statement: str, *bindings: Any) -> Any:
        """The first column of the first row."""
        ...

    def seconds(self) -> float:
        """See Store.seconds."""
        ...

    def clean(self) -> None:
        """Remove old content from the disk as far as possible; never raises, because the next write retries."""
        ...

    def damaged(self, what: str) -> NoReturn:
        """Raise StoreDamaged."""
        ...

    def refuse_loss(self) -> None:
        """Raise StoreDamaged if acknowledged changes are missing."""
        ...

    def trouble(self) -> StoreError | None:
        """See Store.trouble. Any thread."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
