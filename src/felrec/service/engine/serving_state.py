"""The engine's state in memory: the model's state, ids, events and attributes, changed block by block."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.data.events import BEGINNING, EventColumns, Events, RowChange, Rows
from felrec.data.question_time import question_time
from felrec.data.tables.decayed_counts import HALF_LIFE_CHOICES, DecayedCounts
from felrec.errors import NotFound
from felrec.fitted import FittedModel
from felrec.item_score_cache import ItemScoreCache
from felrec.recommender import Recommender, RowLoading, Servable, Trainable, usable
from felrec.service.engine.base_events import BaseEvents
from felrec.service.engine.directory import Directory
from felrec.service.engine.event_index import EventIndex
from felrec.service.engine.item_attributes import ItemAttributes, from_store
from felrec.service.engine.locks import ReadWriteLock
from felrec.service.engine.types import Side
from felrec.store.protocol import EMPTY_BASE, Contents


@dataclass(frozen=True)
class Block:
    """Events as rows, with times as given by the client, and the new ids among them."""

    events: Events
    users: Sequence[str | None] = ()  # None: a row of an erased id, in a replay
    items: Sequence[str | None] = ()


@dataclass
class Numbering:
    """Assigns rows to new ids before they are on disk and visible to readers."""

    users: Directory
    items: Directory
    new_users: dict[str, int] = field(default_factory=dict)
    new_items: dict[str, int] = field(default_factory=dict)

    def block(self, columns: EventColumns) -> Block:
        """Number the next block."""
        before = len(self.new_users), len(self.new_items)
        users = _numbered(columns.users, self.users, self.new_users)
        items = _numbered(columns.items, self.items, self.new_items)
        new_users, new_items = list(self.new_users)[before[0] :], list(self.new_items)[before[1] :]
        return Block(Events(users, items, columns.times, columns.weights), new_users, new_items)


def _numbered(names: Sequence[str], known: Directory, new: dict[str, int]) -> Rows:
    rows = known.rows(names)
    for at in np.flatnonzero(rows < 0).tolist():
        rows[at] = new.setdefault(names[at], len(known) + len(new))
    return rows


class ServingState:
    """The state of one store. Readers hold `lock.read()`; only one thread calls methods that change it."""

    def __init__(self, model: FittedModel, contents: Contents, now: Callable[[], float] = time.time) -> None:
        self.model, self._now = model, now
        self.recommender: Recommender = model.recommender
        self.scorer = ItemScoreCache(self.recommender)
        self._servable = isinstance(self.recommender, Servable)  # stored, because checking a protocol is slow
        if isinstance(self.recommender, Trainable):
            self.recommender.train(False)
        # A model that is not servable may train while it observes: a rebuild needs its initial weights.
        self._weights = None if self.servable else self.recommender.weights()
        self.lock = ReadWriteLock()
        self.generation = 0  # rows mean the same users and items as long as this is the same
        self.users, self.items = Directory(contents.users), Directory(contents.items)
        self.index = EventIndex(contents)
        attributes = {item: from_store(kept) for item, kept in contents.attributes.items()}
        self.attributes = ItemAttributes(attributes, contents.items)
        self.base, self.base_clock = contents.identity.base, contents.clock
        self.base_events: BaseEvents | None = None  # known if the log of the base was given
        self.clock = max(self.base_clock, float(contents.events.times.max(initial=BEGINNING)))
        self.journal = len(contents.events)  # events since the store was created
        self.events = int(np.abs(contents.pairs["events"]).sum()) + len(contents.events)
        self.popularity = self._popularity()
        self.stored_rows = {name: len(rows) for name, rows in contents.state.items()}
        if contents.state and isinstance(self.recommender, RowLoading):
            self.recommender.load_rows(contents.state)
        elif contents.state:
            arrays = {name: np.asarray(rows) for name, rows in contents.state.items()}
            self.recommender.load_state({name: torch.from_numpy(rows) for name, rows in arrays.items()})
        else:
            self.load_base()

    @property
    def servable(self) -> Servable | None:
        """The model, if it can compute changes before applying them."""
        return cast(Servable, self.recommender) if self._servable else None

    @property
    def question_time(self) -> float:
        """The time as of which questions are answered."""
        return question_time(self.clock, self._now())

    @property
    def now(self) -> float:
        """The present, by which items become available and expire."""
        return self._now()

    def directory(self, side: Side) -> Directory:
        """The ids of users or of items."""
        return self.users if side == "user" else self.items

    def event_counts(self, side: Side) -> NDArray[np.int64]:
        """Number of events of each user or each item."""
        return self.index.user_events if side == "user" else self.index.item_events

    def known_row(self, side: Side, name: str) -> int:
        """The row of a user or an item with events; NotFound if there is none."""
        row = self.directory(side).row(name)
        if row < 0:
            raise NotFound(f"unknown {side}: it has no events, or was erased")
        return row

    def numbering(self) -> Numbering:
        """Start numbering new events."""
        return Numbering(self.users, self.items)

    def change(self, block: Block) -> RowChange | None:
        """The rows that a block will change; None if the model is not servable."""
        return self.servable.change(self._usable(block.events, self.clock)) if self.servable else None

    def apply_change(self, block: Block, change: RowChange | None) -> None:
        """Make a block that is on disk visible."""
        with self.lock.write():
            if change is not None and self.servable:
                self.scorer.apply_change(change)
            else:
                observe_alone(self.recommender, self._usable(block.events, self.clock))
            self.attributes.add_rows(block.items, len(self.items))
            self.users.extend(block.users)
            self.items.extend(block.items)
            self.index.append(block.events)
            self.popularity.add(block.events.counting().items)
            self.clock = max(self.clock, float(block.events.times.max(initial=BEGINNING)))
            self.events += len(block.events)
            self.journal += len(block.events)

    def catch_up(
        self, blocks: Sequence[Events], first: int, about_to_change: Callable[[RowChange], None] | None = None
    ) -> None:
        """Apply blocks that are in the index to the model's state. The callback is told of each change before it."""
        clock = max(self.base_clock, self.index.newest_before(first))
        for events in blocks:
            if len(events):  # all events of a block may have been erased
                if self.servable:
                    change = self.servable.change(self._usable(events, clock))
                    if about_to_change:
                        about_to_change(change)
                    self.servable.apply_change(change)
                else:
                    observe_alone(self.recommender, self._usable(events, clock))
                clock = max(clock, float(events.times.max()))

    def _usable(self, events: Events, clock: float) -> Events:
        """What the model gets of events that arrive at a time."""
        return usable(self.recommender, events.not_before(clock))

    def replace_model(self, recommender: Recommender) -> None:
        """Serve with another model, which has the same weights."""
        with self.lock.write():
            self.recommender = self.model.recommender = recommender  # nothing may hold the old one: it is large
            self.scorer = ItemScoreCache(recommender)

    def become(self, other: ServingState) -> None:
        """Go on with all that another state has, which must not be used any more. Rows may mean other ids then."""
        same_base = ("base_events",) if other.base == self.base else ()
        kept = {name: vars(self)[name] for name in ("lock", "model", "_now", *same_base)}
        with self.lock.write():
            vars(self.model).update(vars(other.model))  # nothing may hold the old one: it is large
            vars(self).update(vars(other) | kept, generation=self.generation + 1)
            self.model.recommender = self.recommender

    @property
    def rebuildable(self) -> bool:
        """Whether the state follows from the base and the journal: the base contains no erased user."""
        return self.base == EMPTY_BASE or not (self.users.empty < len(self.model.user_ids)).any()

    def empty_rows(self) -> RowChange:
        """The rows of the state that belong to erased ids: no event of a replay writes them."""
        empty = np.union1d(self.users.empty, self.items.empty)
        assert self.servable is not None
        view = self.servable.view()
        return {name: (empty[empty < len(rows)], rows[empty[empty < len(rows)]]) for name, rows in view.items()}

    def initial_model(self) -> Recommender:
        """A copy of the model with the state of the base."""
        model = copy.deepcopy(self.recommender)
        self._load_base(model)
        return model

    def forget_user(self, user: int) -> None:
        """Remove the id and the events of a user from everything except the model."""
        self.events -= int(self.index.user_events[user])
        self.journal -= int((self.index.of_user(user) >= self.index.base).sum())
        self.index.forget(user)
        self.users.forget([user])
        self.popularity = self._popularity()
        self.clock = max(self.base_clock, self.index.newest_before(self.index.blocks))

    def forget_items(self, items: Sequence[int]) -> None:
        """Remove the ids and the attributes of items without events."""
        for row in items:
            self.attributes.forget(self.items.name(row), row)
        self.items.forget(items)

    def _popularity(self) -> DecayedCounts:
        counts = DecayedCounts(HALF_LIFE_CHOICES[2])
        counts.add(self.index.items[self.index.counts])
        return counts

    def load_base(self) -> None:
        """Return the model to the state of the base."""
        self._load_base(self.recommender)

    def _load_base(self, recommender: Recommender) -> None:
        if self._weights is not None:
            recommender.load_weights(self._weights)
        if self.base == EMPTY_BASE:
            recommender.reset()
        else:
            recommender.load_state(self.model.after_validation)


def observe_alone(recommender: Recommender, block: Events) -> None:
    """Observe a block in one thread, so that replaying the journal gives the same result at every start.

    For a model that trains while observing, the number of threads would change the rounding of gradient sums.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        recommender.observe(block)
    finally:
        torch.set_num_threads(threads)
