"""Messages of a stream whose events did not fit: notes of the store have them until a consumer has taken them.

Nobody waits for the answer to a command of a stream, so the transaction that answers it also keeps what was refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import msgspec

from felrec.answers.types import Rejected

_PREFIX = "refused:"


class SourceMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message of a stream as it came."""

    place: tuple[int, int]
    body: bytes
    time: float


class Source(msgspec.Struct, frozen=True):
    """The stream that events came from."""

    stream: str  # its name
    messages: list[SourceMessage]  # of each event, in the order of the sender


class RefusedMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message whose event did not fit, and why."""

    message: SourceMessage
    reason: str


def refused_note(source: Source, rejected: Sequence[Rejected]) -> dict[str, str]:
    """The note of the messages of these rows.

    Its name is never used twice, also not in a store that takes the notes of another one over.
    """
    refused = [RefusedMessage(source.messages[row.row], row.reason) for row in rejected]
    return {f"{_PREFIX}{source.stream}:{secrets.token_hex(8)}": msgspec.json.encode(refused).decode()}


def refused_messages(notes: Mapping[str, str], stream: str) -> dict[str, list[RefusedMessage]]:
    """The refused messages of a stream, by the name of their note.

    >>> source = Source("redis:events:felrec", [SourceMessage((5, 0), b"{}", 1e9)])
    >>> notes = refused_note(source, [Rejected(0, "no room")])
    >>> [found] = refused_messages(notes, source.stream).values()
    >>> found[0].message.place, found[0].reason
    ((5, 0), 'no room')
    """
    of_stream = f"{_PREFIX}{stream}:"
    return {
        name: msgspec.json.decode(text, type=list[RefusedMessage])
        for name, text in notes.items()
        if name.startswith(of_stream)
    }
