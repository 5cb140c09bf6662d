"""Tickets: signed names of recommendation lists, with which clients report what became of them.

A ticket says itself what must be known of its list, so the service remembers no list that it has answered, a ticket is
good after a restart and in every process of a store, and nothing in it is about the user.
"""

from __future__ import annotations

import hashlib
import random
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Literal, NamedTuple, get_args

from felrec.errors import InvalidRequest

Arm = Literal["outside", "model", "trending"]
"""Of the test that compares the model with trending items; outside: the list is not part of it."""
ARMS: tuple[Arm, ...] = get_args(Arm)
VALID_FOR = 86_400  # seconds in which reports are accepted
_LIST = struct.Struct("<QIBHH")
_SIGNATURE = 8  # bytes
_FOREIGN = "unknown ticket; give that of an answer of this service"


class Ticket(NamedTuple):
    """What a ticket says of its list."""

    number: int  # random
    issued: int  # seconds since 1970
    arm: Arm
    first: int  # place of its first item: the offset
    places: int


class Tickets:
    """Signs and reads tickets with a secret key.

    >>> tickets = Tickets(b"secret")
    >>> tickets.read(tickets.sign("model", 10, 5, now=7.0), now=8.0)[1:]
    (7, 'model', 10, 5)
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, arm: Arm, first: int, places: int, now: float) -> str:
        """A ticket for a new list."""
        said = _LIST.pack(random.getrandbits(64), int(now), ARMS.index(arm), first, places)
        return urlsafe_b64encode(said + self._signature(said)).decode().rstrip("=")

    def read(self, ticket: str, now: float) -> Ticket:
        """The content of a ticket; InvalidRequest if it is foreign, changed or too old."""
        try:
            raw = urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4))
            said, signature = raw[: _LIST.size], raw[_LIST.size :]
            if signature != self._signature(said):
                raise InvalidRequest(_FOREIGN)
            number, issued, arm, first, places = _LIST.unpack(said)
        except (ValueError, NotBase64, struct.error):
            raise InvalidRequest(_FOREIGN) from None
        if now > issued + VALID_FOR:
            raise InvalidRequest(f"the ticket is older than {VALID_FOR // 3_600} hours")
        return Ticket(number, issued, ARMS[arm], first, places)

    def _signature(self, said: bytes) -> bytes:
        return hashlib.blake2b(said, digest_size=_SIGNATURE, key=self._key).digest()


def arm_of(user: str, share: float) -> Arm:
    """The arm of a user, of whom a share gets trending items: a hash, so it stays the same while the share does.

    >>> [arm_of(user, 0.5) for user in ("ada", "bob", "eve")], arm_of("ada", 0.0)
    (['trending', 'trending', 'model'], 'outside')
    """
    if not share:
        return "outside"
    lot = int.from_bytes(hashlib.blake2b(user.encode(), digest_size=8, person=b"felrec a/b").digest())
    return "trending" if lot < share * 2**64 else "model"
