"""API keys with scopes and rate limits. A key is shown once; only its SHA-256 is stored.

A key has 256 random bits, so it cannot be guessed, and a slow password hash is not needed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import math
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from felrec.errors import ConfigError
from felrec.files import write_atomically

_log = logging.getLogger(__name__)

SCOPES = ("read", "write")
VERSION = 1


@dataclass(frozen=True)
class Key:
    """The stored data of a key."""

    id: str
    name: str
    scopes: tuple[str, ...]
    sha256: str
    created: str
    requests_per_second: float | None = None  # None: no limit
    events_per_second: float | None = None

    def __post_init__(self) -> None:
        for rate in (self.requests_per_second, self.events_per_second):
            if rate is not None and not (math.isfinite(rate) and rate > 0):
                raise ConfigError(f"a rate limit of {rate} a second is impossible; give a number above 0")

    def as_stored(self) -> dict[str, Any]:
        """The fields for the file; without limits they are those that every version of felrec reads."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class KeyFile:
    """Keys in a JSON file that only its owner may read. Changes to the file take effect without a restart.

    >>> import tempfile
    >>> keys = KeyFile(Path(tempfile.mkdtemp()) / "keys.json")
    >>> secret, key = keys.add(["read"], name="shop window")
    >>> keys.find(secret) == key, keys.find("felrec_guess")
    (True, None)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, ...] | None = None
        self._keys: list[Key] = []

    def entries(self) -> list[Key]:
        """All keys; empty if the file does not exist yet."""
        stamp = self._stamp_now()
        if stamp != self._stamp:
            try:
                self._keys = self._read() if stamp else []
            except ConfigError as error:
                if self._stamp is None:
                    raise
                _log.warning("%s; keeping the previous keys", error)  # a typo must not lock clients out
            self._stamp = stamp
        return self._keys

    def add(
        self,
        scopes: Iterable[str],
        name: str = "",
        requests_per_second: float | None = None,
        events_per_second: float | None = None,
    ) -> tuple[str, Key]:
        """Create a key. The secret is returned and not stored."""
        chosen = tuple(scope for scope in SCOPES if scope in set(scopes))
        if not chosen or set(scopes) - set(SCOPES):
            raise ConfigError(f"a key needs scopes out of {', '.join(SCOPES)}; give --scope read or --scope write")
        identifier = secrets.token_hex(4)
        secret = f"felrec_{identifier}_{secrets.token_urlsafe(32)}"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        key = Key(identifier, name, chosen, _digest(secret), now, requests_per_second, events_per_second)
        self._write([*self.entries(), key])
        return secret, key

    def remove(self, identifier: str) -> None:
        """Revoke a key; a running service refuses it from the next request on."""
        left = [key for key in self.entries() if key.id != identifier]
        if len(left) == len(self.entries()):
            raise ConfigError(f"{self.path}: unknown key {identifier}; see felrec keys list")
        self._write(left)

    def find(self, secret: str) -> Key | None:
        """The key with this secret; None if there is none. Takes the same time for every wrong secret."""
        digest = _digest(secret)
        found: Key | None = None
        for key in self.entries():  # no early exit: the time must not reveal which key matches
            if hmac.compare_digest(key.sha256, digest):
                found = key
        return found

    def _stamp_now(self) -> tuple[int, ...] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino  # chmod changes only the first

    def _read(self) -> list[Key]:
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["version"] != VERSION:
                raise ConfigError(f"{self.path}: unknown version {document['version']}; use the felrec that wrote it")
            return [Key(**{**entry, "scopes": tuple(entry["scopes"])}) for entry in document["keys"]]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self.path}: not a key file; create one with felrec keys add") from None
        except OSError as error:
            advice = "run felrec keys as the user of the service"
            raise ConfigError(f"{self.path}: cannot be read ({error.strerror}); {advice}") from None

    def _write(self, keys: list[Key]) -> None:
        """Replace the file atomically, readable only by its owner."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        document = {"version": VERSION, "keys": [key.as_stored() for key in keys]}
        write_atomically(self.path, json.dumps(document, indent=2) + "\n", private=True)
        self._stamp = None


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
