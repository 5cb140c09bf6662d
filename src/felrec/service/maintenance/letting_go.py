"""Let go of users and items that had no event for some time: the store is built again without them."""

from __future__ import annotations

from typing import NamedTuple

from felrec.data.silence import Active, Mask
from felrec.errors import DataError
from felrec.service.maintenance.journal import Journal, Names


class LetGo(NamedTuple):
    """How many users and items are let go, and how many events go with them."""

    users: int
    items: int
    events: int


def without_silent(journal: Journal, seconds: float, now: float) -> tuple[Journal, LetGo]:
    """The journal without users and items whose newest event is older than this, counted from the newest event of all.

    An event goes if its user or its item does. Events from the future, by the time `now`, do not make others older.
    """
    if not len(journal):
        raise DataError("the store has no events, so there is nothing to let go")
    events = journal.events
    since = min(float(events.times.max()), now) - seconds
    active = Active.none(len(journal.users), len(journal.items))
    active.see(events, since)
    left = journal.only(active.of_both(events))
    gone = [_known(names) - int(rows.sum()) for names, rows in _sides(journal, active)]
    return left, LetGo(gone[0], gone[1], len(journal) - len(left))


def _sides(journal: Journal, active: Active) -> tuple[tuple[Names, Mask], tuple[Names, Mask]]:
    return (journal.users, active.users), (journal.items, active.items)


def _known(names: Names) -> int:
    return sum(name is not None for name in names)
