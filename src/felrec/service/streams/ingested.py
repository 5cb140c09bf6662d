"""Which entries of a Redis stream are in the store: a small value, however many entries there are."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

Id = tuple[int, int]  # milliseconds and a counter; entries of a stream are in the order of their ids


@dataclass(frozen=True)
class Ingested:
    """All entries up to one, except for those that were delivered to other consumers and are not in the store yet.

    >>> ingested = Ingested((7, 0), frozenset({(3, 0)}))
    >>> [(id, 0) in ingested for id in (2, 3, 7, 8)]
    [True, False, True, False]
    """

    until: Id = (0, 0)
    missing: frozenset[Id] = frozenset()

    def __contains__(self, entry: Id) -> bool:
        return entry <= self.until and entry not in self.missing

    def after(self, ids: Collection[Id], delivered: Id, pending: Collection[Id], first: Id) -> Ingested:
        """What is ingested once these ids are, none of which may come after `delivered`.

        `delivered` is the last entry that the group was given, `pending` are those given and not acknowledged, as one
        look at the server saw them. What was acknowledged is ingested, so all others up to `delivered` are. Entries
        before the `first` one of the stream were deleted, and need not be remembered.

        >>> Ingested((2, 0)).after([(5, 0)], delivered=(6, 0), pending=[(1, 0), (4, 0), (5, 0)], first=(0, 0))
        Ingested(until=(6, 0), missing=frozenset({(4, 0)}))
        """
        until = max(self.until, delivered)
        elsewhere = {entry for entry in pending if entry not in self}
        missing = (self.missing | elsewhere).difference(ids)
        return Ingested(until, frozenset(entry for entry in missing if first <= entry <= until))

    def to_note(self) -> str:
        """As a note of the store.

        >>> Ingested((7, 1), frozenset({(3, 0)})).to_note()
        '{"until": "7-1", "missing": ["3-0"]}'
        """
        return json.dumps({"until": spell(self.until), "missing": [spell(entry) for entry in sorted(self.missing)]})

    @classmethod
    def of_note(cls, note: str | None) -> Ingested:
        """The inverse of `to_note`; nothing was ingested if there is no note.

        >>> Ingested.of_note('{"until": "7-1", "missing": ["3-0"]}')
        Ingested(until=(7, 1), missing=frozenset({(3, 0)}))
        """
        if note is None:
            return cls()
        given = json.loads(note)
        return cls(parse_id(given["until"]), frozenset(map(parse_id, given["missing"])))


def parse_id(text: str) -> Id:
    """The id of an entry as Redis writes it.

    >>> parse_id("1700000000000-3")
    (1700000000000, 3)
    """
    milliseconds, counter = text.split("-")
    return int(milliseconds), int(counter)


def spell(entry: Id) -> str:
    """The inverse of `parse_id`."""
    return f"{entry[0]}-{entry[1]}"
