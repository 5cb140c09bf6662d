"""Submissions that came before: the same key and body get the same receipt, also after a restart."""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import Future
from dataclasses import asdict, dataclass

from felrec.answers.reading import read
from felrec.answers.types import Receipt
from felrec.errors import KeyConflict
from felrec.service.engine.types import IdempotencyKey
from felrec.store.protocol import Answer, Store


@dataclass(frozen=True)
class OnItsWay:
    """A submission with a key that is not answered yet."""

    body: bytes
    future: Future[Receipt]


class IdempotencyStore:
    """Receipts of finished submissions are in the store; memory holds only the ones on their way.

    The caller holds a lock for `waiting_for`, `begin` and `end`; the others are for the ingest thread.
    """

    def __init__(self, seconds: float, store: Store) -> None:
        self._seconds, self._store = seconds, store
        self._waiting: dict[bytes, OnItsWay] = {}

    def waiting_for(self, key: IdempotencyKey) -> Future[Receipt] | None:
        """The submission with this key, if it is on its way; KeyConflict if it is another."""
        one = self._waiting.get(_digest(key.name.encode()))
        if one is None:
            return None
        _check(key, one.body)
        return one.future

    def begin(self, key: IdempotencyKey, future: Future[Receipt]) -> None:
        """A submission is on its way."""
        self._waiting[_digest(key.name.encode())] = OnItsWay(_digest(key.body), future)

    def end(self, key: IdempotencyKey) -> None:
        """It is in the store, or it failed and may come again."""
        self._waiting.pop(_digest(key.name.encode()), None)

    def before(self, key: IdempotencyKey) -> Receipt | None:
        """The receipt of the submission that came with this key; KeyConflict if it was another."""
        kept = self._store.answer(_digest(key.name.encode()))
        if kept is None:
            return None
        _check(key, kept.body)
        return read(Receipt, json.loads(kept.text))

    def answer(self, key: IdempotencyKey, receipt: Receipt) -> Answer:
        """What the store keeps of a submission."""
        text = json.dumps(asdict(receipt))
        return Answer(_digest(key.name.encode()), _digest(key.body), text, time.time() + self._seconds)


def _check(key: IdempotencyKey, body: bytes) -> None:
    if body != _digest(key.body):
        raise KeyConflict("this idempotency key came before with another body; use a new key for new events")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
