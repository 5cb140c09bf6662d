"""Submissions that came before: the same key and body get the same receipt, also after a restart."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import asdict, dataclass

from felrec.errors import KeyConflict
from felrec.service.records import IdempotencyKey, Receipt, Rejected
from felrec.store.protocol import Answer


@dataclass
class Known:
    """A submission with a key: done, or on its way."""

    body: bytes
    future: Future[Receipt]
    expires: float


class Answers:
    """Remembers keys for a while. Not safe for threads: the caller holds a lock."""

    def __init__(self, seconds: float, kept: Iterable[Answer] = ()) -> None:
        self._seconds = seconds
        self._known: OrderedDict[bytes, Known] = OrderedDict()  # those that expire first come first
        for answer in sorted(kept, key=lambda answer: answer.expires):
            future: Future[Receipt] = Future()
            future.set_result(_receipt(answer.text))
            self._known[answer.key] = Known(answer.body, future, answer.expires)

    def find(self, key: IdempotencyKey) -> Future[Receipt] | None:
        """What became of the submission with this key; None if there was none, KeyConflict if it was another."""
        self._forget_expired()
        known = self._known.get(_digest(key.name.encode()))
        if known is None:
            return None
        if known.body != _digest(key.body):
            raise KeyConflict("this idempotency key came before with another body; use a new key for new events")
        return known.future

    def begin(self, key: IdempotencyKey, future: Future[Receipt]) -> None:
        """A submission is on its way."""
        digest = _digest(key.name.encode())
        self._known[digest] = Known(_digest(key.body), future, time.time() + self._seconds)

    def drop(self, key: IdempotencyKey) -> None:
        """It failed: the same key may come again."""
        self._known.pop(_digest(key.name.encode()), None)

    def answer(self, key: IdempotencyKey, receipt: Receipt) -> Answer:
        """What the store keeps of it."""
        digest = _digest(key.name.encode())
        return Answer(digest, self._known[digest].body, json.dumps(asdict(receipt)), self._known[digest].expires)

    def _forget_expired(self) -> None:
        now = time.time()
        while self._known and next(iter(self._known.values())).expires < now:
            self._known.popitem(last=False)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _receipt(text: str) -> Receipt:
    kept = json.loads(text)
    return Receipt(**{**kept, "rejected": tuple(Rejected(**one) for one in kept["rejected"])})
