"""The inbox: writes that any process made durable, and that the writer has not answered yet."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import NamedTuple

from felrec.errors import NotesChanged, StoreMoved
from felrec.store.checksums import Report, of_row, to_bytes
from felrec.store.connection import Connection, Found
from felrec.store.protocol import MOVED, Answered, Command
from felrec.store.writing import put_notes, replace_note

_MOVED = f"note:{MOVED}"
_ADD = (
    "INSERT INTO inbox (kind, body, crc) SELECT ?, ?, ?"
    f" WHERE NOT EXISTS (SELECT 1 FROM meta WHERE name = '{_MOVED}') RETURNING number"
)


class _Append(NamedTuple):
    kind: str
    body: bytes
    notes: Mapping[str, str]
    expected: Mapping[str, str | None]
    number: Future[int]


class Inbox:
    """Appends of all threads of a process. Those that wait at the same moment become durable with one sync."""

    def __init__(self, writing: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._writing = writing  # begins a durable transaction
        self._waiting: deque[_Append] = deque()
        self._turn = threading.Lock()

    def append(
        self, kind: str, body: bytes, notes: Mapping[str, str], expected: Mapping[str, str | None] | None = None
    ) -> int:
        """Put a command into the inbox and return its number; it is durable then."""
        mine = _Append(kind, body, notes, expected or {}, Future())
        self._waiting.append(mine)
        with self._turn:
            if not mine.number.done():  # the thread that had the turn before may have written it
                self._write_all()
        return mine.number.result()

    def _write_all(self) -> None:
        appends = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            with self._writing() as connection:
                accepted = [not append.expected or _replace_notes(connection, append) for append in appends]
                found = [_put(connection, append) if ok else None for append, ok in zip(appends, accepted, strict=True)]
                # A server is asked once for all of them.
                numbers = [None if rows is None else _number(connection, rows) for rows in found]
        except BaseException as error:
            for append in appends:
                append.number.set_exception(error)
        else:
            for append, number in zip(appends, numbers, strict=True):
                if number is None:
                    append.number.set_exception(NotesChanged("a note has changed meanwhile; nothing was appended"))
                else:
                    append.number.set_result(number)


def _put(connection: Connection, append: _Append) -> Found:
    """Finds the number of the command."""
    put_notes(connection, {name: value for name, value in append.notes.items() if name not in append.expected})
    row = (append.kind, append.body, _crc(append.kind, append.body))
    return connection.execute(_ADD, row)


def _number(connection: Connection, found: Found) -> int:
    if rows := found.fetchall():
        return int(rows[0][0])
    moved = connection.execute("SELECT value FROM meta WHERE name = ?", (_MOVED,)).fetchall()
    noted = json.loads(str(moved[0][0]))
    namespace = f" ({noted['namespace']})" if noted.get("namespace") else ""
    raise StoreMoved(f"{noted['store']}{namespace} has taken the place of this store; nothing was stored")


def _replace_notes(connection: Connection, append: _Append) -> bool:
    """Replace all notes that have expected values, or none. In order, so that no two processes wait for one another.

    If they have changed, that does not concern the appends it is written with.
    """
    connection.execute("SAVEPOINT replacing")
    replaced = all(
        replace_note(connection, name, append.notes[name], append.expected[name]) for name in sorted(append.expected)
    )
    if not replaced:
        connection.execute("ROLLBACK TO SAVEPOINT replacing")
    connection.execute("RELEASE SAVEPOINT replacing")
    return replaced


def count_commands(connection: Connection) -> int:
    """How many commands there are."""
    return int(connection.execute("SELECT count(*) FROM inbox").fetchall()[0][0])


def read_commands(connection: Connection, most: int, skip: Collection[int], report: Report) -> list[Command]:
    """The oldest commands without those to skip."""
    statement = "SELECT number, kind, body, crc FROM inbox ORDER BY number LIMIT ?"
    commands = []
    for number, kind, body, crc in connection.execute(statement, (most + len(skip),)).fetchall():
        command = Command(int(number), str(kind), to_bytes(body))
        if _crc(command.kind, command.body) != crc:
            report(f"inbox: command {number} is damaged")
        if command.number not in skip:
            commands.append(command)
    return commands[:most]


def remove_commands(connection: Connection, answered: Sequence[Answered]) -> None:
    """Remove commands whose effect becomes durable with this transaction."""
    connection.executemany("DELETE FROM inbox WHERE number = ?", [(number,) for number, _ in answered])


def check_inbox(connection: Connection, report: Report) -> None:
    """Report commands that are damaged."""
    for number, kind, body, crc in connection.execute("SELECT number, kind, body, crc FROM inbox"):
        if _crc(str(kind), to_bytes(body)) != crc:
            report(f"inbox: command {number} is damaged")


def _crc(kind: str, body: bytes) -> int:
    return of_row(len(kind), kind.encode() + body)  # without its number, which the database gives
