"""How many users and items fit. At a limit, new ids are refused and known ones go on. Only the ingest thread asks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from felrec.answers.types import Rejected
from felrec.data.events import EventColumns
from felrec.service.engine.directory import Directory
from felrec.service.engine.limits import Limits
from felrec.service.engine.memory import resident_bytes
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Attributes, Side

_EACH = 8_192  # bytes to leave for a new user and a new item, so that a long post ends near the memory limit


@dataclass
class SideRoom:
    """New users, or new items, of one commit: those admitted, and how many there may be."""

    known: Directory
    room: float
    reason: str
    admitted: set[str] = field(default_factory=set)

    def fits(self, name: str) -> bool:
        """Whether an unknown id may get a row."""
        return name in self.admitted or len(self.admitted) < self.room


@dataclass(frozen=True)
class Room:
    """The room of one commit, which may consist of several posts."""

    users: SideRoom
    items: SideRoom

    def fits(self, events: int) -> bool:
        """Whether this many events fit, even if each has a new user and a new item."""
        return events <= min(self.users.room, self.items.room)

    def admit(self, events: EventColumns) -> tuple[EventColumns, list[Rejected]]:
        """The events that fit, in order, and the others as rejected rows."""
        new = [side.known.rows(names) < 0 for side, names in self._sides(events)]
        kept, rejected = np.ones(len(events), dtype=bool), list[Rejected]()
        for at in np.flatnonzero(new[0] | new[1]).tolist():
            wanted = [(side, names[at]) for (side, names), of in zip(self._sides(events), new, strict=True) if of[at]]
            full = next((side for side, name in wanted if not side.fits(name)), None)
            if full is not None:
                kept[at] = False
                rejected.append(Rejected(events.number(at), full.reason))
                continue
            for side, name in wanted:
                side.admitted.add(name)
        return (events[np.flatnonzero(kept)] if rejected else events), rejected

    def _sides(self, events: EventColumns) -> tuple[tuple[SideRoom, list[str]], tuple[SideRoom, list[str]]]:
        return (self.users, events.users), (self.items, events.items)


class AttributesRoom:
    """The room for attributes of items of one commit."""

    def __init__(self, limits: Limits, state: ServingState) -> None:
        self._limits, self._state = limits, state
        self._new = 0
        self._memory = math.inf if limits.memory is None else limits.memory - resident_bytes()

    def refusal(self, item: str, attributes: Attributes) -> str | None:
        """Why the attributes of an item do not fit; None if they do, and then they take their room."""
        kept, limits = self._state.attributes, self._limits
        is_new = item not in kept and not kept.is_deleted(item) and self._state.items.row(item) < 0
        if is_new and limits.items is not None and len(kept) + self._new >= limits.items:
            return _reached("item", limits.items)
        more = _weight(attributes) - _weight(kept.of(item)) + (_EACH if is_new else 0)
        if more > 0 and self._memory <= 0:
            return _out_of_memory("attributes", limits.memory or 0)
        self._new += is_new
        self._memory -= more
        return None


class Capacity:
    """The limits of an engine's state, and how far it is from them."""

    def __init__(self, limits: Limits, state: ServingState) -> None:
        self._limits, self._state = limits, state

    def room(self) -> Room:
        """The room that is left now."""
        memory = math.inf
        if self._limits.memory is not None:
            memory = max(0, self._limits.memory - resident_bytes()) // _EACH
        users = self._side("user", self._state.users, self._limits.users, memory)
        return Room(users, self._side("item", self._state.items, self._limits.items, memory))

    def attributes_room(self) -> AttributesRoom:
        """The room that is left for attributes of items now."""
        return AttributesRoom(self._limits, self._state)

    def _side(self, side: Side, known: Directory, limit: int | None, memory: float) -> SideRoom:
        if limit is not None and (left := max(0, limit - known.known)) <= memory:
            return SideRoom(known, left, _reached(side, limit))
        return SideRoom(known, memory, _out_of_memory(f"a new {side}", self._limits.memory or 0))


def _weight(attributes: Attributes) -> int:
    """Characters to keep."""
    return sum(map(len, (attributes.title or "", *attributes.tags)))


def _reached(side: Side, limit: int) -> str:
    return f"no room for a new {side}: the limit of {limit:,} {side}s is reached; start the service with a higher one"


def _out_of_memory(what: str, limit: int) -> str:
    return f"no memory for {what}: the limit of {limit / 1e9:.2f} GB is reached; start the service with a higher one"
