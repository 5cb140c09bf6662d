"""What became of recommendation lists: impressions and clicks, counted by arm and place.

Counts are kept in memory and added to a note of the store every few seconds and at the end, so that a report waits for
no disk. They are about places, never about users or items.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Literal

from felrec.answers.statistics import Difference, FeedbackStats
from felrec.errors import InvalidRequest
from felrec.service.engine.click_counts import FEEDBACK, Counted, Counts, Note
from felrec.service.engine.proportions import difference, share_of
from felrec.service.engine.tickets import Arm, Ticket, Tickets

Kind = Literal["impression", "click"]
_REMEMBERED = 100_000  # lists with reports, so that a repeated one is not counted again
HAND_IN = 5.0  # seconds after which counts are added to the note


class Reported:
    """The places of one list that were reported, as bits."""

    __slots__ = ("clicked", "shown")

    def __init__(self) -> None:
        self.shown = self.clicked = 0


class Feedback:
    """Counts the reports that this process gets; shows them with those of the note. Any thread."""

    def __init__(self, note: str, now: Callable[[], float]) -> None:
        self._now, self._lock = now, threading.Lock()
        self.share = 0.0  # of users with trending items, now
        self._process, self._number = secrets.token_hex(8), 0
        self._own = Counts()
        self._changed = False  # whether the own ones have something to tell
        self._taken: Counted | None = None  # to be added to the note, which may not have them yet
        self._recent: OrderedDict[int, Reported] = OrderedDict()
        self._tickets: Tickets | None = None
        self.follow(Note.read(note))

    def follow(self, note: Note) -> None:
        """Go on with a newer note."""
        with self._lock:
            self.note = note
            self._tickets = Tickets(note.key) if note.key else None
            if self._taken and note.has(self._taken):
                self._taken = None

    def test(self, share: float) -> None:
        """Give this share of users trending items from now on. Another share than before begins a new test."""
        if not 0 <= share < 1:
            raise InvalidRequest(f"a share of {share} of the users: give at least 0 and less than 1")
        with self._lock:
            self.share, before = share, self._total()
            if share:
                self._changed = self._changed or share != before.share
                self._own.begin(share, before.since if share == before.share else self._now())

    def ticket(self, arm: Arm, first: int, places: int) -> str | None:
        """A ticket for a list that is about to be answered; None until the store has a key."""
        tickets = self._tickets
        return tickets.sign(arm, first, places, self._now()) if tickets else None

    def report(self, ticket: str, kind: Kind, place: int | None) -> bool:
        """Count the impression or click of a place of a list, from 0; None: all its places were shown.

        What is clicked was shown, so that a click counts as an impression too, unless that was reported. Returns
        whether anything was new. InvalidRequest if the ticket is not good, or has no such place.
        """
        tickets = self._tickets
        if tickets is None:
            raise InvalidRequest("unknown ticket; none was given yet")
        given = tickets.read(ticket, self._now())
        if place is None and kind == "click":
            raise InvalidRequest("position: say which place was clicked, from 0")
        if place is not None and not 0 <= place < given.places:
            raise InvalidRequest(f"position: the list has {given.places} places, counted from 0; it has no {place}")
        places = (1 << given.places) - 1 if place is None else 1 << place
        with self._lock:
            return self._count(given, places, places if kind == "click" else 0)

    def _count(self, ticket: Ticket, shown: int, clicked: int) -> bool:
        before, arm = self._reported(ticket.number), self._own.arms[ticket.arm]
        new_shown, new_clicked = shown & ~before.shown, clicked & ~before.clicked
        arm.lists += bool(new_shown and not before.shown)
        arm.clicked_lists += bool(new_clicked and not before.clicked)
        arm.shown.update(ticket.first + place for place in _bits(new_shown))
        arm.clicked.update(ticket.first + place for place in _bits(new_clicked))
        before.shown |= shown
        before.clicked |= clicked
        self._changed = self._changed or bool(new_shown or new_clicked)
        return bool(new_shown or new_clicked)

    def _reported(self, number: int) -> Reported:
        found = self._recent.setdefault(number, Reported())
        self._recent.move_to_end(number)
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        return found

    def take(self) -> Counted | None:
        """What has to be added to the note: the same until a note has it, so that nothing is lost or added twice."""
        with self._lock:
            if self._taken is None and self._changed:
                self._number += 1
                self._taken = Counted(self._process, self._number, self._own.kept())
                self._own, self._changed = Counts(self._own.share, self._own.since), False
            return self._taken

    def _total(self) -> Counts:
        taken = [Counts.read(self._taken.counts)] if self._taken else []
        return Counts.total([self.note.counts, *taken, self._own])

    def counts(self) -> dict[Arm, tuple[Counter[int], Counter[int]]]:
        """Impressions and clicks of each arm by place."""
        with self._lock:
            return {arm: (counts.shown, counts.clicked) for arm, counts in self._total().arms.items()}

    def stats(self) -> FeedbackStats:
        """Click rates with intervals."""
        with self._lock:
            total = self._total()
        arms = {arm: counts.stats(arm) for arm, counts in total.arms.items()}
        lists = [share_of(total.arms[arm].clicked_lists, total.arms[arm].lists) for arm in ("model", "trending")]
        both = difference(lists[0], lists[1]) if lists[0] and lists[1] else None
        seen = tuple(one for one in arms.values() if one.lists.of)
        return FeedbackStats(self.share, total.since, seen, both and Difference(*both))


class FeedbackSaver:
    """Background work of the ingest thread: adds to the note what this process counted, and what others send."""

    def __init__(self, feedback: Feedback, write: Callable[[Mapping[str, str]], None]) -> None:
        self._feedback, self._write = feedback, write
        self.due = time.monotonic()  # an earlier version may have made the store: it needs a key

    def step(self) -> bool:
        """Save what there is."""
        self.due = time.monotonic() + HAND_IN  # first: a failed write is tried again after as long
        self.save()
        return True

    def save(self) -> None:
        """Write the note if there is something new."""
        if self._feedback.note.key is None:
            self._put(Note.new())
        if counted := self._feedback.take():
            self.add(counted)

    def add(self, counted: Counted) -> None:
        """Add counts to the note, unless it has them."""
        note = self._feedback.note
        if not note.has(counted):
            self._put(note.plus(counted))

    def _put(self, note: Note) -> None:
        self._write({FEEDBACK: note.text()})
        self._feedback.follow(note)


def _bits(bits: int) -> list[int]:
    """The numbers of the bits that are set.

    >>> _bits(0b1011)
    [0, 1, 3]
    """
    return [place for place in range(bits.bit_length()) if bits >> place & 1]
