"""Connections to a PostgreSQL server that never wait forever, and its errors as errors that say what to do."""

from __future__ import annotations

import re
import select
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from felrec.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreUnreachable
from felrec.store.connection import Found

OLDEST = 130_000  # version 13
_NAMESPACE = re.compile(r"(?!pg_|public$|information_schema$)[a-z][a-z0-9_-]{0,47}")
_LOADING = 600_000  # milliseconds that a large result may be worked on between two portions
_AT_ONCE = 512  # rows of a large result that are fetched at a time
_SECRETS = "password", "sslpassword"
_SAME_SERVER = {"host": "", "hostaddr": "", "port": "5432", "user": ""}  # with what is meant by nothing
_cursors = count()
_Result = TypeVar("_Result")


def check_namespace(namespace: str) -> str:
    """The namespace, if it can be the name of a schema of its own.

    >>> check_namespace("shop-a")
    'shop-a'
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise StoreError(
            f"the namespace {namespace[:60]!r} is not valid; give up to 48 letters a-z, digits, - and _, beginning with"
            " a letter, and neither public nor anything that begins with pg_"
        )
    return namespace


def without_secrets(address: str) -> str:
    """The address for messages: without password and options."""
    given = _parsed(address)
    user = f"{given['user']}@" if given.get("user") else ""
    host = str(given.get("host", "")).replace("/", "%2F")
    port = f":{given['port']}" if given.get("port") else ""
    return f"postgresql://{user}{host}{port}/{given.get('dbname', '')}"


def without_password(address: str) -> str:
    """An address that others may read, with all but its passwords.

    >>> without_password("postgresql://felrec:secret@db/shop?sslmode=require")
    'postgresql:///?user=felrec&dbname=shop&host=db&sslmode=require'
    """
    return _spelled({name: value for name, value in _parsed(address).items() if name not in _SECRETS})


def with_password_of(address: str, other: str) -> str:
    """An address with the passwords of another one, if that is of the same user of the same server.

    >>> with_password_of("postgresql://felrec@db/shop", "postgresql://felrec:secret@db:5432/another")
    'postgresql:///?user=felrec&dbname=shop&host=db&password=secret'
    >>> with_password_of("postgresql://felrec@db2/shop", "postgresql://felrec:secret@db/shop")
    'postgresql://felrec@db2/shop'
    """
    given, known = _parsed(address), _parsed(other)
    if any(given.get(name, default) != known.get(name, default) for name, default in _SAME_SERVER.items()):
        return address
    return _spelled({**given, **{name: known[name] for name in _SECRETS if name in known and name not in given}})


def _spelled(given: dict[str, Any]) -> str:
    """An address. Hosts, which may be several or a folder, are among its parameters."""
    return f"postgresql:///?{urlencode(given, quote_via=quote)}"


def _parsed(address: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(address))
    except psycopg.Error:  # its message would show the password
        raise StoreError(
            "the address of the store is not valid; write postgresql://user@host:5432/database, with special characters"
            " percent-encoded"
        ) from None


class PatientConnection(psycopg.Connection[TupleRow]):
    """A connection that gives up when the server is silent for too long, whatever stands between the two."""

    patience = 5.0  # seconds

    def wait(self, gen: Generator[Any, Any, _Result], interval: float = 0.1, timeout: float | None = None) -> _Result:
        """Wait for the server, as psycopg does, but not forever."""
        return super().wait(self._bounded(gen), interval, timeout)

    def was_ended(self) -> bool:
        """Whether the server ended an idle connection, for example because it was restarted. Then it is closed."""
        try:
            while self.pgconn.transaction_status == TransactionStatus.IDLE and _is_readable(self.pgconn.socket):
                self.pgconn.consume_input()
        except psycopg.OperationalError:
            self.close()
        return self.closed

    def _bounded(self, gen: Generator[Any, Any, _Result]) -> Generator[Any, Any, _Result]:
        try:
            wanted = next(gen)
            heard = time.monotonic()
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    heard = now
                elif now > heard + self.patience:
                    self.pgconn.finish()  # whatever comes later answers another question
                    raise errors.ConnectionTimeout("the server does not answer")
                wanted = gen.send(ready)
        except StopIteration as done:
            result: _Result = done.value
            return result


def _is_readable(socket: int) -> bool:
    waiting = select.poll()
    waiting.register(socket, select.POLLIN)
    return bool(waiting.poll(0))


class PostgresConnection:
    """One connection to a server, opened when it is needed and again after it was lost. See Connection.

    `prepare` is called with each new connection. Only one thread may use it.
    """

    def __init__(
        self,
        address: str,
        name: str,
        patience: float,
        prepare: Callable[[PostgresConnection], None],
        watched: bool = True,
    ) -> None:
        self._address, self._name, self._patience, self._prepare = address, name, patience, prepare
        self._watched = watched  # whether an end is noticed before it is used again; it must expect no notifications
        self._open: PatientConnection | None = None
        self._portions: ExitStack | None = None  # of results that are fetched in portions

    @property
    def psycopg(self) -> PatientConnection:
        """The connection itself."""
        if self._open is None or self._open.closed or (self._watched and self._open.was_ended()):
            self._connect()
        assert self._open is not None
        return self._open

    def _connect(self) -> None:
        with translated(self._name):
            limits = {
                "connect_timeout": max(2, round(self._patience)),
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": round(self._patience * 1000),
            }
            given = {"application_name": "felrec", **limits, **_parsed(self._address)}
            self._open = PatientConnection.connect(**given, client_encoding="utf8", autocommit=True)
            self._open.patience = self._patience
        try:
            self._prepare(self)
        except BaseException:
            self.close()
            raise

    def execute(self, statement: str, bindings: tuple[Any, ...] = ()) -> Found:
        """Execute a statement."""
        if self._portions is not None:
            cursor = self._portions.enter_context(self.psycopg.cursor(name=f"felrec_{next(_cursors)}"))
            cursor.itersize = _AT_ONCE
            return cursor.execute(_translated_statement(statement), bindings, binary=True)
        return self.psycopg.execute(_translated_statement(statement), bindings, binary=True)

    def executemany(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Execute a statement once for each row of bindings."""
        several = list(rows)
        if several:
            self.psycopg.cursor().executemany(_translated_statement(statement), several)

    @contextmanager
    def transaction(self, begin: str = "BEGIN", *, large: bool = False) -> Iterator[None]:
        """A transaction whose statements are sent together, as far as nobody asks for their results.

        `large` results are fetched in portions instead, so that they are not in memory as a whole.
        """
        connection = self.psycopg
        try:
            with nullcontext() if large else connection.pipeline():
                self.execute(begin)
                if large:  # the session has a limit for those who write, and hold locks
                    self.execute(f"SET LOCAL idle_in_transaction_session_timeout TO {_LOADING}")
                with self._in_portions() if large else nullcontext():
                    yield
                self.execute("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise

    @contextmanager
    def _in_portions(self) -> Iterator[None]:
        with ExitStack() as self._portions:
            try:
                yield
            finally:
                self._portions = None

    def _roll_back(self, connection: PatientConnection) -> None:
        try:
            if not connection.closed:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()

    @property
    def lost(self) -> bool:
        """Whether the connection was lost since it was opened."""
        return self._open is not None and bool(self._open.closed)

    def close(self) -> None:
        """Close it."""
        if self._open is not None:
            self._open.close()


@lru_cache(1_000)
def _translated_statement(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Translate PostgreSQL's errors."""
    try:
        yield
    except errors.DiskFull:
        raise StoreFull(f"{name}: the server has no space left; free some space there, then write again") from None
    except (errors.FeatureNotSupported, errors.SyntaxError) as error:  # of a system that is not quite PostgreSQL
        raise StoreError(f"{name}: the server cannot do this ({_first_line(error)}); nothing was changed") from None
    except errors.ReadOnlySqlTransaction:
        raise StoreError(f"{name}: the server is read-only; give the address of the primary") from None
    except errors.InsufficientPrivilege as error:
        raise StoreError(f"{name}: {_first_line(error)}; GRANT it, or connect as the owner of the schema") from None
    except (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure):
        raise StoreBusy(f"{name}: another process is writing; try again") from None
    except (psycopg.OperationalError, psycopg.InterfaceError, errors.IdleInTransactionSessionTimeout) as error:
        what = _first_line(error)
        raise StoreUnreachable(f"{name}: the server cannot be reached ({what}); it is tried again") from None
    except psycopg.Error as error:
        what = _first_line(error)
        raise StoreDamaged(f"{name} is damaged or not a felrec store ({what}); restore a backup") from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip()[:200]
