"""Everything an engine knows, in memory: the model's state, ids, events and attributes, changed block by block."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch

from felrec.data.events import Events, RowChange
from felrec.data.tables.decayed_counts import HALF_LIFE_CHOICES, DecayedCounts
from felrec.fitted import FittedModel
from felrec.item_score_cache import ItemScoreCache
from felrec.model.paper.cache import last_occurrence
from felrec.recommender import Recommender, Servable, Trainable
from felrec.service.engine.directory import Directory
from felrec.service.engine.event_index import EventIndex, as_events
from felrec.service.engine.item_attributes import ItemAttributes, from_store
from felrec.service.engine.locks import ReadWriteLock
from felrec.store.protocol import EMPTY_BASE, EVENT, Contents, EventRecords


@dataclass(frozen=True)
class Block:
    """Events with their rows, and the ids that appear with them."""

    records: EventRecords
    users: Sequence[str] = ()  # new
    items: Sequence[str] = ()  # new


@dataclass
class Numbering:
    """Gives rows to ids ahead of time: nothing is known to others until it is on disk."""

    users: Directory
    items: Directory
    new_users: dict[str, int] = field(default_factory=dict)
    new_items: dict[str, int] = field(default_factory=dict)

    def block(self, users: Sequence[str], items: Sequence[str], times: Sequence[float]) -> Block:
        """The next block."""
        records = np.empty(len(users), dtype=EVENT)
        before = len(self.new_users), len(self.new_items)
        records["user"] = _numbered(users, self.users, self.new_users)
        records["item"] = _numbered(items, self.items, self.new_items)
        records["time"] = times
        return Block(records, list(self.new_users)[before[0] :], list(self.new_items)[before[1] :])


def _numbered(names: Sequence[str], known: Directory, new: dict[str, int]) -> list[int]:
    rows = []
    for name in names:
        row = known.row(name)
        rows.append(row if row >= 0 else new.setdefault(name, len(known) + len(new)))
    return rows


class ServingState:
    """The state of one store. Whoever reads holds `lock.read()`; one writer at a time calls the methods that change."""

    def __init__(self, model: FittedModel, contents: Contents) -> None:
        self.model = model
        self.recommender: Recommender = model.recommender
        self.scorer = ItemScoreCache(self.recommender)
        self._servable = isinstance(self.recommender, Servable)  # asked once: a protocol takes long to look through
        if isinstance(self.recommender, Trainable):
            self.recommender.train(False)
        # A model that is not servable may even learn while it observes: to begin anew it needs what it began with.
        self._weights = None if self.servable else self.recommender.weights()
        self.lock = ReadWriteLock()
        self.users, self.items = Directory(contents.users), Directory(contents.items)
        self.index = EventIndex.of_contents(contents)
        attributes = {item: from_store(kept) for item, kept in contents.attributes.items()}
        self.catalogue = ItemAttributes(attributes, contents.items)
        self.base, self.base_clock = contents.identity.base, contents.clock
        self.clock = max(self.base_clock, float(contents.events["time"].max(initial=0.0)))
        self.journal = len(contents.events)  # events since the store began
        self.events = int(contents.pairs["events"].sum()) + len(contents.events)
        self.popularity = self._popularity()
        if contents.state:
            self.recommender.load_state({name: torch.from_numpy(rows) for name, rows in contents.state.items()})
        else:
            self._load_base(self.recommender)

    @property
    def servable(self) -> Servable | None:
        """The model, if its changes are known before they happen."""
        return cast(Servable, self.recommender) if self._servable else None

    def numbering(self) -> Numbering:
        """Begin to number new events."""
        return Numbering(self.users, self.items)

    def change(self, block: Block) -> RowChange | None:
        """What taking in a block will change; None if the model cannot say."""
        return self.servable.change(as_events(block.records, self.clock)) if self.servable else None

    def apply_change(self, block: Block, change: RowChange | None) -> None:
        """Take in a block that is on disk."""
        with self.lock.write():
            if change is not None and self.servable:
                self.scorer.apply_change(change)
            else:
                _observe(self.recommender, as_events(block.records, self.clock))
            self.catalogue.appear(block.items, len(self.items))
            self.users.extend(block.users)
            self.items.extend(block.items)
            self.index.append(block.records)
            self.popularity.add(block.records["item"])
            self.clock = max(self.clock, float(block.records["time"].max(initial=0.0)))
            self.events += len(block.records)
            self.journal += len(block.records)

    def catch_up(self, blocks: Sequence[EventRecords], first: int) -> RowChange:
        """Take blocks that are in the index into the model's state; returns what has changed."""
        changes = []
        clock = max(self.base_clock, self.index.newest_before(first))
        for records in blocks:
            if len(records):  # all of it may have been erased
                if self.servable:
                    change = self.servable.change(as_events(records, clock))
                    self.servable.apply_change(change)
                    changes.append(change)
                else:
                    _observe(self.recommender, as_events(records, clock))
                clock = max(clock, float(records["time"].max()))
        return merged(changes)

    def rebuilt(self, without: int) -> Recommender:
        """The model as it would be if a user had never come: a copy that takes the whole journal in again."""
        model = copy.deepcopy(self.recommender)
        self._load_base(model)
        clock = self.base_clock
        for number in range(self.index.blocks):
            records = self.index.block(number, without)
            if len(records):
                _observe(model, as_events(records, clock))
                clock = max(clock, float(records["time"].max()))
        return model

    def forget(self, user: int, items: Sequence[int]) -> None:
        """Drop a user, and items that nobody else had, from everything but the model."""
        self.events -= int(self.index.user_events[user])
        self.journal -= int((self.index.of_user(user) >= self.index.base).sum())
        self.index.forget(user)
        self.users.forget([user])
        for row in items:
            self.catalogue.disappear(self.items.name(row), row)
        self.items.forget(items)
        self.popularity = self._popularity()
        self.clock = max(self.base_clock, self.index.newest_before(self.index.blocks))

    def _popularity(self) -> DecayedCounts:
        counts = DecayedCounts(HALF_LIFE_CHOICES[2])
        counts.add(self.index.items[self.index.users >= 0])
        return counts

    def _load_base(self, recommender: Recommender) -> None:
        if self._weights is not None:
            recommender.load_weights(self._weights)
        if self.base == EMPTY_BASE:
            recommender.reset()
        else:
            recommender.load_state(self.model.after_validation)


def _observe(recommender: Recommender, block: Events) -> None:
    """Take in a block of a journal that is replayed at every start, with the same result each time.

    A model that learns from it adds up gradients, and how many threads share a sum decides its last bits.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        recommender.observe(block)
    finally:
        torch.set_num_threads(threads)


def merged(changes: Sequence[RowChange]) -> RowChange:
    """Changes one after the other as one: of each row the last value."""
    changes = [change for change in changes if change]
    if len(changes) == 1:
        return changes[0]
    together: RowChange = {}
    for name in dict.fromkeys(name for change in changes for name in change):
        parts = [change[name] for change in changes if name in change]
        rows = np.concatenate([rows for rows, _ in parts])
        last = last_occurrence(rows)
        together[name] = rows[last], np.concatenate([values for _, values in parts])[last]
    return together
