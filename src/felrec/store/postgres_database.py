"""A schema of a PostgreSQL database as the tables of one store."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, NoReturn

from felrec.errors import NotLeader, StoreBusy, StoreDamaged, StoreError, StoreUnreachable
from felrec.store.change_log import trim_changes
from felrec.store.checksums import to_json
from felrec.store.connection import Connection
from felrec.store.database import Database, News
from felrec.store.leading import Leader, put_leader, read_leader
from felrec.store.postgres_connecting import PostgresConnection, check_namespace, translated, without_secrets
from felrec.store.postgres_schema import PostgresSchema
from felrec.store.protocol import TableSpec
from felrec.store.reading import Counters, StateReader, read_counts
from felrec.store.state_rows import read_state
from felrec.store.writing import put_meta

_log = logging.getLogger(__name__)

Mode = Literal["create", "write", "read"]
_POLL, _LOOK_ANYWAY = 0.01, 0.25  # seconds between two looks at the change log, without and with notifications
_GLANCE = 250  # milliseconds to wait for those who load a table that is to be replaced
_LEAVING = 1.0  # seconds within which the server notices that a process has closed its store
_LONGEST_NAME = 63  # characters, of PostgreSQL
_END_SESSION = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = ? AND pid <> ? AND state <> 'idle' AND datname = current_database()"
)
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase:
    """See PostgresStore for its parameters, and Database for what others may call.

    Four connections: of the writer, whose session also has the lock against single engines; of appends; of short
    looks; and one that only waits for notifications.
    """

    def __init__(
        self, address: str, mode: Mode, *, namespace: str, shared: bool, patience: float, listen: bool
    ) -> None:
        self.name = f"{without_secrets(address)} ({check_namespace(namespace)})"
        self.shared, self._mode, self._namespace = shared, mode, namespace
        self.counters, self.tables = Counters(), list[TableSpec]()
        self.token, self.leading, self.unclean = 0, False, False
        self._counted = time.monotonic()  # when the seconds of the counters were right
        self._patience, self._listen = patience, listen
        self._trouble: StoreError | None = None
        self._session = 0  # the number that the server gave to the session of the writer
        self._turn, self._append_lock, self._look_lock = threading.RLock(), threading.Lock(), threading.Lock()
        self._closing = threading.Event()

        given = address, self.name, patience
        self.connection = PostgresConnection(*given, self._prepare_writer)
        self._schema = PostgresSchema(namespace, self.name, self.connection)
        self._appender, self._looker = (PostgresConnection(*given, self._prepare) for _ in range(2))
        self._listener = PostgresConnection(*given, self._prepare_listener, watched=False)
        try:
            with self._noticing():
                self._open()
        except BaseException:
            self.close()
            raise

    # Opening

    def _open(self) -> None:
        self._schema.check_server()
        if self._mode == "create":
            self._schema.make()
        self._schema.check_format(write=self._mode != "read")
        self.refresh()
        if self._mode != "read" and not self.shared:
            self._lead_alone()

    def _prepare(self, connection: PostgresConnection) -> None:
        """Set what each session needs. One that hangs within a transaction must not hold its locks forever."""
        limit = round(self._patience * 1000)
        connection.execute(f'SET search_path TO "{self._namespace}"')
        connection.execute(f"SET idle_in_transaction_session_timeout TO {limit}")
        connection.execute(f"SET lock_timeout TO {limit // 4}")
        if self._mode == "read":
            connection.execute("SET default_transaction_read_only TO on")
        if connection.execute("SHOW synchronous_commit").fetchall()[0][0] == "off":
            connection.execute("SET synchronous_commit TO on")

    def _prepare_writer(self, connection: PostgresConnection) -> None:
        self._prepare(connection)
        self._session = connection.psycopg.info.backend_pid
        if self._mode != "read":
            self._lock(connection)
        if self.leading:
            self._introduce(connection)

    def _lock(self, connection: PostgresConnection) -> None:
        how = "pg_try_advisory_lock_shared" if self.shared else "pg_try_advisory_lock"
        until = time.monotonic() + _LEAVING
        while not connection.execute(f"SELECT {how}(?)", (self._schema.lock_number,)).fetchall()[0][0]:
            if time.monotonic() > until:
                raise StoreBusy(
                    f"{self.name} is in use by another process; stop all that serve it first, or send them the events:"
                    " POST /v1/interactions, felrec consume"
                )
            time.sleep(_POLL)

    def _prepare_listener(self, connection: PostgresConnection) -> None:
        connection.execute(f"LISTEN {self._channel}")

    @property
    def _channel(self) -> str:
        return f'"felrec {self._namespace}"'

    def has_tables_in(self, namespace: str) -> bool:
        """Whether another schema has tables."""
        with self._noticing():
            return bool(self._schema.tables_in(namespace))

    # Moving

    def rename(self, namespace: str) -> None:
        """Give the schema another name. One without tables that has it gives way; any other is left as it is."""
        with self._turn, self._noticing(), self.connection.transaction():
            self._check_token()
            self._schema.rename(namespace)

    def give_way(self, other: PostgresDatabase, keep: str | None) -> None:
        """Let the schema of another store have the name of this one; see PostgresSchema.give_way."""
        with self._turn, self._noticing(), self.connection.transaction():
            self._check_token()
            self._schema.give_way(other._namespace, keep)

    def drop(self) -> None:
        """Remove the schema with all that it has."""
        with self._turn, self._noticing(), self.connection.transaction():
            self._check_token()
            self._schema.drop()

    # Leading

    def lead(self, token: int) -> None:
        """See Database.lead."""
        self.refresh()
        self.token, self.leading = token, True
        self._introduce(self.connection)
        self._begin_to_write()

    def _lead_alone(self) -> None:
        """Fence off every other engine; let processes that followed before load everything again."""
        with self.appending() as connection:
            self.lock_lease(connection)
            before = read_leader(connection)
            self.unseat(connection, before)
            self.token = before.token + 1
            put_leader(connection, Leader(self.token))
        self.leading = True
        self._introduce(self.connection)
        if self.counters.change:
            self.counters.change += 1
        self._begin_to_write()

    def _begin_to_write(self) -> None:
        outside = (self.counters.folded, self.counters.saved)  # saves that a kill left: folded, or not complete
        with self.transaction(self.counters):
            self.connection.execute("DELETE FROM saves WHERE row < ? OR row >= ?", outside)
            if not self.shared:
                trim_changes(self.connection, keep=0, newest=self.counters.change)

    def lock_lease(self, connection: Connection) -> None:
        """See Database.lock_lease."""
        connection.execute("SELECT 1 FROM meta WHERE name = 'lease' FOR UPDATE")

    def close_inbox(self) -> None:
        """See Database.close_inbox. An INSERT has a lock of the table until its transaction ends.

        A lock of the table and not of a row: appends that follow one another without a pause would keep an exclusive
        lock of a row away for ever, while a table has a queue.
        """
        self.connection.execute("LOCK TABLE inbox IN SHARE ROW EXCLUSIVE MODE")

    def unseat(self, connection: Connection, leader: Leader) -> None:
        """See Database.unseat. A process that was stopped within a transaction would hold its locks meanwhile."""
        connection.execute(_END_SESSION, (self._writer_name(leader.token), self._session))

    def _introduce(self, connection: PostgresConnection) -> None:
        """Let other processes find the session of the writer."""
        connection.execute("SELECT set_config('application_name', ?, false)", (self._writer_name(self.token),))

    def _writer_name(self, token: int) -> str:
        return f"felrec {self._namespace} {token}"[:_LONGEST_NAME]

    # Transactions

    @contextmanager
    def transaction(self, counters: Counters, *, durable: bool = True) -> Iterator[None]:
        """See Database.transaction."""
        if not self.leading:
            self._refuse()
        before = self.counters.change
        with self._turn, self._noticing():
            try:
                with self.connection.transaction():
                    if not durable:
                        self.connection.execute("SET LOCAL synchronous_commit TO off")
                    self._check_token()
                    yield
                    if counters.state is not None:
                        counters.seconds = self.seconds()
                        put_meta(self.connection, "counters", to_json(vars(counters)))
                    if counters.change != before:
                        self._notify(self.connection, "changes")
            finally:
                if self.connection.lost:  # nobody knows whether it was committed: read everything again
                    self.leading, self._session = False, 0
        self.counters, self._counted = counters, time.monotonic()

    @contextmanager
    def taking_from(self, other: Database) -> Iterator[Callable[[Sequence[str]], None]]:
        """See Database.taking_from. The tables themselves move, so it takes no longer for large ones."""
        assert isinstance(other, PostgresDatabase)
        theirs = other._namespace

        def take(tables: Sequence[str]) -> None:
            self.connection.execute(f"SET LOCAL lock_timeout TO {_GLANCE}")  # posts wait, and others load for long
            for table in tables:
                self.connection.execute(f"DROP TABLE {table}")
                self.connection.execute(f'ALTER TABLE "{theirs}".{table} SET SCHEMA "{self._namespace}"')
            self.connection.execute(f'DROP SCHEMA "{theirs}" CASCADE')  # what is left of it could not be opened

        yield take

    def _check_token(self) -> None:
        """Compare the token; nobody can take the lease before the transaction ends."""
        if int(self.value("SELECT value FROM meta WHERE name = 'fence' FOR SHARE")) != self.token:
            self.leading = False
            self._refuse()

    def _refuse(self) -> NoReturn:
        if self.shared:
            raise NotLeader(f"{self.name}: this process does not write to the store now; nothing was changed")
        raise StoreBusy(f"{self.name}: the connection was lost or another engine has taken over; start again")

    @contextmanager
    def reading(self, *, large: bool = False) -> Iterator[None]:
        """See Database.reading."""
        with self._turn, self._noticing(), self.connection.transaction(_SNAPSHOT, large=large):
            try:
                yield
            except (ValueError, KeyError, TypeError) as error:  # the content cannot be decoded
                self.damaged(" ".join(str(error).split())[:120])

    def refresh(self) -> dict[str, str]:
        """See Database.refresh."""
        with self.reading():
            meta, self.counters, self.tables = read_counts(self.connection, self.damaged)
        self._counted = time.monotonic()
        return meta

    @property
    def state_reader(self) -> StateReader:
        """See Database.state_reader."""
        return read_state

    @property
    def flushing(self) -> bool:
        """The server does that."""
        return False

    def value(self, statement: str, *bindings: Any) -> Any:
        """The first column of the first row."""
        return self.connection.execute(statement, bindings).fetchall()[0][0]

    def seconds(self) -> float:
        """See Store.seconds."""
        return self.counters.seconds + time.monotonic() - self._counted

    def clean(self) -> None:
        """Let the server reuse the space of what was erased; it overwrites it in its own time."""
        try:
            with self._turn, self._noticing():
                self.connection.psycopg.patience = 3600.0
                self.connection.execute("VACUUM users, items, attributes, base, blocks, pages, saves, inbox, changes")
                self.connection.psycopg.patience = self._patience
            self.unclean = False
        except StoreError as error:
            _log.warning("%s; what was erased still takes up space", error)
            self.unclean = True

    # For every other thread

    @contextmanager
    def appending(self) -> Iterator[Connection]:
        """See Database.appending."""
        with self._append_lock, self._noticing(), self._appender.transaction():
            yield self._appender
            self._notify(self._appender, "inbox")

    def _notify(self, connection: PostgresConnection, news: News) -> None:
        if self._listen:
            connection.execute(f"NOTIFY {self._channel}, '{news}'")

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """See Database.looking."""
        with self._look_lock, self._noticing(), self._looker.transaction(_SNAPSHOT):
            yield self._looker

    def version(self) -> int:
        """A look at the log after this does not miss a notification."""
        if self._listen:
            try:
                with self._noticing():
                    _ = self._listener.psycopg
            except (StoreDamaged, StoreError) as error:
                if isinstance(error, StoreUnreachable):
                    raise
                _log.warning("%s: no notifications (%s); the change log is polled", self.name, error)
                self._listen = False
        return 0

    def wait(self, what: News, version: int, seconds: float) -> bool:
        """See Database.wait. Without notifications, or if one is lost, the log is looked at again soon."""
        if seconds <= 0 or self._closing.is_set():
            return False
        if not self._listen:
            return not self._closing.wait(min(seconds, _POLL))
        with suppress(StoreUnreachable), self._noticing():  # the next look at the log finds out more
            for notification in self._listener.psycopg.notifies(timeout=min(seconds, _LOOK_ANYWAY)):
                if notification.payload == what:
                    break
        return not self._closing.is_set()

    def now(self, connection: Connection) -> float:
        """The server's clock."""
        found = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
        return float(found[0][0])

    # Trouble

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Translate errors, and remember whether the server could be reached."""
        try:
            with translated(self.name):
                yield
        except StoreUnreachable as error:
            self._trouble = error
            raise
        self._trouble = None

    def damaged(self, what: str) -> NoReturn:
        """Raise StoreDamaged."""
        raise StoreDamaged(f"{self.name} is damaged ({what}); restore a backup")

    def refuse_loss(self) -> None:
        """The server takes care of its own log."""

    def trouble(self) -> StoreError | None:
        """See Store.trouble."""
        return self._trouble

    def close(self) -> None:
        """Close all connections, and end a wait."""
        self._closing.set()
        with self._append_lock, self._look_lock:
            for connection in (self._listener, self._looker, self._appender, self.connection):
                connection.close()
