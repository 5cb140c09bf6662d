"""API keys: who may read and who may write. A key is shown once and kept only as its SHA-256.

A key holds 256 random bits, so a plain hash is enough: there is nothing to guess and no need for a slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from felrec.errors import ConfigError

_log = logging.getLogger(__name__)

SCOPES = ("read", "write")
VERSION = 1


@dataclass(frozen=True)
class Key:
    """What the file keeps of a key."""

    id: str
    name: str
    scopes: tuple[str, ...]
    sha256: str
    created: str


class KeyFile:
    """Keys in a JSON file that only its owner may read. Changes of the file are seen without a restart.

    >>> import tempfile
    >>> keys = KeyFile(Path(tempfile.mkdtemp()) / "keys.json")
    >>> secret, key = keys.add(["read"], name="shop window")
    >>> keys.scopes_of(secret), keys.scopes_of("felrec_guess")
    (frozenset({'read'}), None)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, ...] | None = None
        self._keys: list[Key] = []

    def entries(self) -> list[Key]:
        """All keys; none if there is no file yet."""
        stamp = self._stamp_now()
        if stamp != self._stamp:
            try:
                self._keys = self._read() if stamp else []
            except ConfigError as error:
                if self._stamp is None:
                    raise
                _log.warning("%s; the keys read before stay", error)  # nobody is locked out by a slip
            self._stamp = stamp
        return self._keys

    def add(self, scopes: Iterable[str], name: str = "") -> tuple[str, Key]:
        """Make a key. The secret is returned here and kept nowhere."""
        chosen = tuple(scope for scope in SCOPES if scope in set(scopes))
        if not chosen or set(scopes) - set(SCOPES):
            raise ConfigError(f"a key needs scopes out of {', '.join(SCOPES)}; give --scope read or --scope write")
        identifier = secrets.token_hex(4)
        secret = f"felrec_{identifier}_{secrets.token_urlsafe(32)}"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        key = Key(identifier, name, chosen, _digest(secret), now)
        self._write([*self.entries(), key])
        return secret, key

    def remove(self, identifier: str) -> None:
        """Revoke a key; a running service refuses it from the next request on."""
        left = [key for key in self.entries() if key.id != identifier]
        if len(left) == len(self.entries()):
            raise ConfigError(f"{self.path}: no key {identifier}; see felrec keys list")
        self._write(left)

    def scopes_of(self, secret: str) -> frozenset[str] | None:
        """What the holder of a secret may do; None if it is no key. Takes the same time for every wrong one."""
        digest = _digest(secret)
        found: frozenset[str] | None = None
        for key in self.entries():  # no early exit: the time must not tell which key came close
            if hmac.compare_digest(key.sha256, digest):
                found = frozenset(key.scopes)
        return found

    def _stamp_now(self) -> tuple[int, ...] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino  # rights change the first alone

    def _read(self) -> list[Key]:
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["version"] != VERSION:
                raise ConfigError(f"{self.path}: keys of version {document['version']}; use the felrec that made them")
            return [Key(**{**entry, "scopes": tuple(entry["scopes"])}) for entry in document["keys"]]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self.path}: not a file of keys; make one with felrec keys add") from None
        except OSError as error:
            advice = "run felrec keys as the user of the service"
            raise ConfigError(f"{self.path}: cannot be read ({error.strerror}); {advice}") from None

    def _write(self, keys: list[Key]) -> None:
        """Replace the file in one step, readable by its owner alone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        document = {"version": VERSION, "keys": [asdict(key) for key in keys]}
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        if self.path.exists():  # whoever serves must still be able to read it
            owner = self.path.stat()
            with suppress(PermissionError):
                os.chown(beside, owner.st_uid, owner.st_gid)
        beside.replace(self.path)
        self._stamp = None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
