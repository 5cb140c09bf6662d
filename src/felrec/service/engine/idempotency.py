"""Repeated submissions: the same key and body get the same receipt, also after a restart."""

from __future__ import annotations

import hashlib
import json
import zlib
from base64 import b85decode, b85encode
from concurrent.futures import Future
from dataclasses import asdict, dataclass

from felrec.answers.reading import read
from felrec.answers.types import Receipt
from felrec.errors import KeyConflict
from felrec.service.engine.types import IdempotencyKey
from felrec.store.protocol import Store, StoredReceipt

_PLAIN = 512  # characters of a receipt that is stored as it is
_COMPRESSED = "zlib:"


@dataclass(frozen=True)
class OnItsWay:
    """A submission with a key that is still being processed."""

    body: bytes
    future: Future[Receipt]


class IdempotencyStore:
    """Receipts of finished submissions are in the store; memory has only the unfinished submissions.

    Receipts expire by the store's own clock, because the clock of the machine may jump. The caller holds a lock for
    `waiting_for`, `begin` and `end`; only the ingest thread calls the other methods.
    """

    def __init__(self, seconds: float, store: Store) -> None:
        self._seconds, self._store = seconds, store
        self._waiting: dict[bytes, OnItsWay] = {}

    def waiting_for(self, key: IdempotencyKey) -> Future[Receipt] | None:
        """The unfinished submission with this key, if any; KeyConflict if its body differs."""
        one = self._waiting.get(_digest(key.name.encode()))
        if one is None:
            return None
        _check(key, one.body)
        return one.future

    def begin(self, key: IdempotencyKey, future: Future[Receipt]) -> None:
        """Register a submission as being processed."""
        self._waiting[_digest(key.name.encode())] = OnItsWay(_body_digest(key), future)

    def end(self, key: IdempotencyKey) -> None:
        """Remove a submission that is in the store, or that failed and may be sent again."""
        self._waiting.pop(_digest(key.name.encode()), None)

    def before(self, key: IdempotencyKey) -> Receipt | None:
        """The receipt of an earlier submission with this key, if any; KeyConflict if its body differs."""
        kept = self._store.answer(_digest(key.name.encode()))
        if kept is None:
            return None
        _check(key, kept.body)
        return read(Receipt, json.loads(_unpacked(kept.text)))

    def answer(self, key: IdempotencyKey, receipt: Receipt) -> StoredReceipt:
        """The entry that the store keeps for a submission."""
        text = _packed(json.dumps(asdict(receipt)))
        return StoredReceipt(_digest(key.name.encode()), _body_digest(key), text, self._store.seconds() + self._seconds)


def without_body(key: IdempotencyKey) -> IdempotencyKey:
    """The same key for another process, which need not know the body."""
    return IdempotencyKey(key.name, b"", _body_digest(key))


def _check(key: IdempotencyKey, body: bytes) -> None:
    if body != _body_digest(key):
        raise KeyConflict("this idempotency key was already used with another body; use a new key for new events")


def _packed(text: str) -> str:
    """A receipt as it is stored: one of many rejected rows is compressed, else it would be far larger than its post.

    >>> rows = "no room " * 10_000
    >>> len(_packed(rows)), _unpacked(_packed(rows)) == rows, _packed("{}")
    (190, True, '{}')
    """
    return text if len(text) <= _PLAIN else _COMPRESSED + b85encode(zlib.compress(text.encode())).decode()


def _unpacked(text: str) -> str:
    if not text.startswith(_COMPRESSED):
        return text
    return zlib.decompress(b85decode(text.removeprefix(_COMPRESSED))).decode()


def _body_digest(key: IdempotencyKey) -> bytes:
    return key.digest or _digest(key.body)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
