"""The audit log: who changed what and when, as JSON lines, without ids of users or items in clear.

An id is recorded as its HMAC, under a key in a private file beside the store. So an operator, who has that key, can
check whether a given id was erased, but nobody can read ids from the log.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import secrets
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Full, Queue

from felrec.errors import ConfigError
from felrec.files import write_atomically
from felrec.service.engine.types import Side
from felrec.service.http.logs import note

WAITING = 10_000  # entries that wait for the disk; more are dropped
PATIENCE = 5.0  # seconds for the last entries to be written
DIGEST = 32  # hexadecimal digits


@dataclass(frozen=True)
class Digests:
    """Digests of ids under a secret key.

    >>> Digests(b"secret").of("user", "ada") == Digests(b"secret").of("item", "ada")
    False
    """

    key: bytes

    @classmethod
    def beside(cls, store: Path) -> Digests:
        """With the key of a store, which is created if it is missing."""
        path = key_file(store)
        if not path.exists():
            write_atomically(path, secrets.token_hex(32) + "\n", private=True)
        return cls.existing(store)

    @classmethod
    def existing(cls, store: Path) -> Digests:
        """With the key of a store; ConfigError if it is missing or damaged."""
        path = key_file(store)
        try:
            key = bytes.fromhex(path.read_text(encoding="ascii"))
        except FileNotFoundError:
            advice = "check the path of the store; felrec serve --audit creates the file"
            raise ConfigError(f"{path}: there is no such key of an audit log; {advice}") from None
        except ValueError:
            raise ConfigError(f"{path}: not the key of an audit log; restore the file, or move it away") from None
        return cls(key)

    def of(self, side: Side, identifier: str) -> str:
        """The digest of the id of a user or an item."""
        text = f"{side}:{identifier}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.key, text, "sha256").hex()[:DIGEST]


def key_file(store: Path) -> Path:
    """The file with the key of a store's audit log: who can read it can read all ids in the store anyway."""
    return store.with_name(f"{store.name}-audit-key")


class AuditLog:
    """Appends entries to a file that only its owner can read, from a thread, so that no answer waits for the disk.

    A file that was renamed or removed is created again, so log rotation needs no signal. Close it after the last entry.
    """

    def __init__(self, path: Path, digests: Digests, waiting: int = WAITING) -> None:
        self.path, self.digests = path, digests
        self.dropped = 0  # entries that are not in the file, because too many were waiting or the disk failed
        self._losing = threading.Lock()
        self._reported = False  # whether the service log says so already
        self._torn = False  # whether the file ends within an entry
        self._entries: Queue[bytes | None] = Queue(waiting)
        try:
            self._file = _append_to(path)
        except OSError as error:
            advice = "check the path and its permissions"
            raise ConfigError(f"{path}: the audit log cannot be written ({error.strerror}); {advice}") from None
        self._thread = threading.Thread(target=self._run, name="felrec-audit", daemon=True)
        self._thread.start()

    def record(self, **fields: object) -> None:
        """Add an entry with the current time. Never waits: if too many entries are waiting, it is dropped."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            self._entries.put_nowait(f"{json.dumps({'time': now, **fields})}\n".encode())
        except Full:
            self._lost("too many entries are waiting")

    def close(self) -> None:
        """Write the entries that are waiting, unless the disk hangs."""
        with suppress(Full):
            self._entries.put(None, timeout=PATIENCE)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        for entry in iter(self._entries.get, None):
            try:
                self._write(entry)
                self._reported = False
            except OSError as error:
                self._lost(str(error))
        os.close(self._file)

    def _write(self, entry: bytes) -> None:
        if not self._is_current():
            old, self._file = self._file, _append_to(self.path)
            os.close(old)
            self._torn = False
        line = b"\n" + entry if self._torn else entry
        written = os.write(self._file, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _is_current(self) -> bool:
        """Whether the open file is still the one at the path."""
        try:
            return os.path.samestat(os.fstat(self._file), self.path.stat())
        except FileNotFoundError:
            return False

    def _lost(self, reason: str) -> None:
        with self._losing:  # two threads lose entries
            self.dropped += 1
            report, self._reported = not self._reported, True
        if report:
            note("audit entries are being dropped", level=40, file=str(self.path), reason=reason)


def _append_to(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
