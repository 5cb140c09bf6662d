"""Why an item is recommended: the parts of its score, and the facts behind them. The caller holds the read lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from felrec.abilities import Explaining, Part, Representing
from felrec.answers.types import Reason, ReasonItem
from felrec.data.events import Rows
from felrec.service.engine.event_index import Places
from felrec.service.engine.filters import known_items
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.similarity import most_similar

_DAY = 86_400
_NEW = 20  # an item with fewer events is new
_HISTORY = 64  # newest items of a user that can explain a recommendation
_COUNTED = 10_000  # newest events of an item that are looked at: facts about the past are not worth more time
_ITEMS = 3  # of the history, in one reason
_LEAST = 0.05  # a smaller share of a score is no reason
_OFTEN = 3  # so many others had both items, else it was not often


def reasons_for(state: ServingState, user: str, items: Sequence[str], k: int) -> list[tuple[Reason, ...]]:
    """For each item, at most k reasons, that of the largest share first; none for an item without events."""
    known, _ = known_items(state, list(dict.fromkeys(items)))
    reasons = _Facts(state, user).reasons(known, k)
    return [reasons.get(state.items.row(item), ()) for item in items]


class _Facts:
    """What the events say about one user and any item."""

    def __init__(self, state: ServingState, user: str) -> None:
        self._state, self._user = state, state.users.row(user)
        taken = state.index.items[self._mine()[::-1]].tolist()
        self._history = np.array(list(dict.fromkeys(taken))[:_HISTORY], dtype=np.int32)  # the newest first

    def _mine(self) -> Places:
        """Places of the user, oldest first, without what they rejected."""
        index = self._state.index
        return index.not_against(index.of_user(self._user)) if self._user >= 0 else np.zeros(0, dtype=np.int64)

    def reasons(self, items: Rows, k: int) -> dict[int, tuple[Reason, ...]]:
        """At most k reasons for each item."""
        return {
            item: self._reasons(item, parts, k) for item, parts in zip(items.tolist(), self._parts(items), strict=True)
        }

    def _reasons(self, item: int, parts: Sequence[Part], k: int) -> tuple[Reason, ...]:
        whole = sum(part.gain for part in parts)
        shares = [(part, part.gain / whole) for part in _with_repetition(parts, item)]
        made = [self._reason(part, share, item) for part, share in shares if share >= _LEAST]
        kept: dict[str, Reason] = {}
        for reason in made:
            if reason is not None:
                kept.setdefault(reason.kind, reason)  # what comes soon after an item often comes right after it
        return tuple(kept.values())[:k]

    def _parts(self, items: Rows) -> list[list[Part]]:
        model, user = self._state.recommender, self._user if self._user >= 0 else len(self._state.users)
        if isinstance(model, Explaining) and len(items):
            return model.explain(user, self._state.question_time, items)
        return [[Part("vectors", 1.0, [])] if isinstance(model, Representing) else [] for _ in items]

    def _reason(self, part: Part, share: float, item: int) -> Reason | None:
        make = {
            "repetition": self._again,
            "together": self._together,
            "follows": self._after,
            "ahead": self._soon_after,
            "trend": self._trending,
            "sequence": self._similar,
            "vectors": self._similar,
        }[part.signal]
        reason = make(part, item)
        return None if reason is None else replace(reason, share=round(share, 3))

    def _again(self, part: Part, item: int) -> Reason | None:
        index = self._state.index
        places = self._mine()
        places = places[index.items[places] == item]
        if not len(places):
            return None
        events, last = int(index.events_at(places).sum()), float(np.max(index.times[places]))
        times = "once" if events == 1 else f"{events:,} times"
        ago = "" if np.isnan(last) else f", last {_ago(self._state.question_time - last)}"
        known = None if np.isnan(last) else last
        return Reason("again", 0, f"you had it {times}{ago}", (), events=events, last=known)

    def _together(self, part: Part, item: int) -> Reason | None:
        leads = [lead for lead, _ in part.leads if lead != item][:_ITEMS]
        if not leads:
            return None
        items = tuple(self._item(lead, people) for lead in leads if (people := self._others_with(item, lead)))
        if not items:  # only this user had both
            return None
        return Reason("together", 0, f"{_people(items[0].people or 0)} had it and {_name(items[0])}", items)

    def _after(self, part: Part, item: int) -> Reason | None:
        return self._following(part, item, "right after")

    def _soon_after(self, part: Part, item: int) -> Reason | None:
        return self._following(part, item, "soon after")

    def _following(self, part: Part, item: int, how: str) -> Reason | None:
        leads = [lead for lead, _ in part.leads[:_ITEMS] if lead != item]
        if not leads:
            return None
        items = tuple(map(self._item, leads))
        often = "often" if self._others_with(item, leads[0]) >= _OFTEN else "taken"
        return Reason("after", 0, f"{often} {how} {_name(items[0])}", items)

    def _trending(self, part: Part, item: int) -> Reason:
        state, events = self._state, int(self._state.index.item_events[item])
        if events < _NEW:
            people = self._alike(item)
            text = f"new, and {_people(people)} with items of yours had it" if people else "new"
            return Reason("new", 0, text, (), events=events, people=people)
        today = int((state.index.times[self._places(item)] > state.question_time - _DAY).sum())
        if today:
            return Reason("trending", 0, f"{_counted(today, 'event')} in the last 24 hours", (), events=today)
        return Reason("popular", 0, f"{_counted(events, 'event')} so far", (), events=events)

    def _similar(self, part: Part, item: int) -> Reason | None:
        items = tuple(self._item(int(row)) for row in most_similar(self._state, item, self._history, _ITEMS))
        return Reason("similar", 0, f"users like those of {_name(items[0])}", items) if items else None

    def _alike(self, item: int) -> int:
        """The number of other users of an item who have an item of this user's history too."""
        index, others = self._state.index, self._users_of(item)
        mine = self._history[self._history != item]
        return sum(bool(np.isin(index.seen(int(user)), mine).any()) for user in others if user != self._user)

    def _others_with(self, item: int, lead: int) -> int:
        """The number of other users who had both items."""
        both = np.intersect1d(self._users_of(item), self._users_of(lead))
        return int((both != self._user).sum())

    def _users_of(self, item: int) -> Rows:
        return np.unique(self._state.index.users[self._places(item)])

    def _places(self, item: int) -> Places:
        return self._state.index.not_against(self._state.index.of_item(item)[-_COUNTED:])

    def _item(self, row: int, people: int | None = None) -> ReasonItem:
        name = self._state.items.name(row)
        return ReasonItem(name, self._state.attributes.of(name).title, people)


def _name(item: ReasonItem) -> str:
    return item.title or item.id


def _with_repetition(parts: Sequence[Part], item: int) -> list[Part]:
    """The same parts, most first; links of an item to itself say that the user had it, so they are repetition."""
    joined = dict[str, Part]()
    for part in parts:
        to_itself = bool(part.leads) and all(lead == item for lead, _ in part.leads)
        signal, leads = ("repetition", []) if to_itself else (part.signal, part.leads)
        gain = part.gain + (joined[signal].gain if signal in joined else 0)
        joined[signal] = Part(signal, gain, leads)
    return sorted(joined.values(), key=lambda part: -part.gain)


def _people(count: int) -> str:
    return "one person" if count == 1 else f"{count:,} people"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _ago(seconds: float) -> str:
    """How long ago something was.

    >>> _ago(30), _ago(7_000), _ago(8.2 * 86_400)
    ('just now', '2 hours ago', '8 days ago')
    """
    for unit, length in (("day", _DAY), ("hour", 3_600), ("minute", 60)):
        if round(seconds / length) >= 1 and seconds >= length * 0.9:
            return f"{_counted(round(seconds / length), unit)} ago"
    return "just now"
