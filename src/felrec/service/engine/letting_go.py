"""Let go of users and items that had no event for some time, in the background, while the engine serves.

A second store and a second state are built, in pieces, from the events of all others. Once they have caught up, the
engine goes on with them. From then on store and state are those of an engine that never saw the events that are gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import cast

from felrec.data.events import EventColumns, Events
from felrec.data.silence import Active
from felrec.data.split import Sizes
from felrec.errors import ConfigError, StoreBusy, StoreError
from felrec.recommender import Servable
from felrec.registry import model_kind
from felrec.service.engine.committer import Committer
from felrec.service.engine.eraser import Eraser
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.identity import begin
from felrec.service.engine.item_attributes import from_store
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import ServingState
from felrec.store.protocol import EMPTY_BASE, Batch, Replaceable, Store

_log = logging.getLogger(__name__)
_FIRST, _EVERY = 60.0, 3_600.0  # seconds from the start to the first look at who is silent, and between two
_BUSY = 5.0  # seconds until another attempt, because another process loads the store
_WORTH = 0.1  # share of the users, or of the items, that must be silent to build everything again
_LOOK, _COPY = 1_000_000, 4_096  # places of the journal that are looked at, or copied, at a time
_REFUSED = "--forget-after: {why}"


@dataclass(frozen=True)
class Successor:
    """The store and the state that are being built."""

    store: Replaceable
    state: ServingState
    committer: Committer

    @classmethod
    def of(cls, store: Replaceable, state: ServingState, limits: Limits) -> Successor:
        """Without events yet, with the attributes that items have now."""
        kind, model = model_kind(state.model.name), state.model
        recommender = kind.build(kind.rescored(model.settings, None), 0, "cpu", Sizes(0, 0, 0, 0))
        recommender.load_weights(model.recommender.weights())
        fresh, new = replace(model, recommender=recommender), store.beside()
        try:
            begin(new, fresh, empty=True)
            new.commit(Batch(attributes=store.besides().attributes))
            successor = ServingState(fresh, new.load())
            return cls(new, successor, Committer(new, successor, IdempotencyStore(0.0, new), limits, 0))
        except BaseException:
            _discard(new)
            raise

    def finish(self, store: Replaceable) -> None:
        """Take over what the store has besides events, once all of those are applied."""
        besides, kept = store.besides(), self.state.attributes
        for item, attributes in besides.attributes.items():
            given = from_store(attributes)
            if kept.is_deleted(item) if given is None else kept.of(item) == given and item in kept:
                continue
            kept.put(item, self.state.items.row(item), given)
        self.committer.carry_over(besides, store.seconds())

    def add(self, events: EventColumns, block: int) -> Iterator[None]:
        """Make events durable, then apply them, block by block."""
        numbering = self.state.numbering()
        for _ in self.committer.committed([numbering.block(part) for part in events.blocks(block)]):
            yield


class LettingGo:
    """Background work of the ingest thread; see `Background`."""

    def __init__(self, store: Store, state: ServingState, committer: Committer, eraser: Eraser, limits: Limits) -> None:
        self._state, self._committer, self._eraser = state, committer, eraser
        self._store = cast(Replaceable, store)  # as every store is that an engine serves
        self._limits, self._erasures, self._not_before = limits, 0, 0.0
        self._pieces: Iterator[None] = iter(())
        self._successor: Successor | None = None
        self.due = inf
        if limits.forget_after < inf:
            check_letting_go(state)
            self._begin(_FIRST)

    def step(self) -> bool:
        """Do one piece. The next is due after a pause as long as this one: others need the processor too."""
        begun, done = time.monotonic(), object()
        if self._erased():  # they must not come back, and the state is changing in another way
            self._begin(_FIRST)
            return True
        try:
            last = next(self._pieces, done) is done
        except BaseException:
            self._begin(_EVERY)
            raise
        if last:
            self._begin(_EVERY)
        else:
            self.due = max(2 * time.monotonic() - begun, self._not_before)
        return True

    def _erased(self) -> bool:
        return self._eraser.busy or self._committer.rebuilding.running or self._eraser.begun != self._erasures

    def close(self) -> None:
        """Give up what is under way."""
        self._pieces, self.due = iter(()), inf
        successor, self._successor = self._successor, None
        if successor is not None:
            _discard(successor.store)

    def _begin(self, pause: float) -> None:
        self.close()
        self._pieces, self._erasures = self._letting_go(), self._eraser.begun
        self.due = time.monotonic() + pause

    def _letting_go(self) -> Iterator[None]:
        state, decided = self._state, len(self._state.index.users)
        known = state.users.known, state.items.known
        active, since = Active.none(len(state.users), len(state.items)), self._since()
        for events in self._events(decided, _LOOK):
            active.see(events, since)
            yield
        silent = known[0] - int(active.users.sum()), known[1] - int(active.items.sum())
        if silent[0] < _WORTH * known[0] and silent[1] < _WORTH * known[1]:
            return
        self._successor = successor = Successor.of(self._store, state, self._limits)
        yield
        gone = 0
        for events in self._events(decided, _COPY):
            kept = events[active.of_both(events)]
            gone += len(events) - len(kept)
            yield from self._add(kept)
        yield from successor.committer.saver.finish()
        yield from self._take_over(successor, decided)
        _log.info("let go of %d users and %d items that were silent, with %d events", *silent, gone)

    def _events(self, end: int, size: int) -> Iterator[Events]:
        """The events of the base, then those of the journal up to a place, so many at a time."""
        index, base = self._state.index, self._state.base_events
        if base is not None:
            for first in range(0, len(base.events), size):
                yield base.between(first, first + size, self._state.users.empty)
        for first in range(index.base, end, size):
            yield index.between(first, min(first + size, end))

    def _take_over(self, successor: Successor, first: int) -> Iterator[None]:
        """Add the events since a place, also those of silent users, and go on with what was built."""
        index = self._state.index
        while self._successor is not None:
            while first < len(index.users):
                end = min(first + _COPY, len(index.users))
                yield from self._add(index.between(first, end))
                first = end
            if self._state.base_events is not None:  # they are in the journal then
                self._committer.put_notes(self._state.base_events.note(self._store.besides().notes))
            successor.finish(self._store)
            try:
                self._committer.become(successor.committer)
                self._successor = None
            except StoreBusy as error:
                if self._committer.broken:
                    raise
                _log.info("silent users and items are let go a little later: %s", error)
                self._not_before = time.monotonic() + _BUSY
                yield

    def _add(self, events: Events) -> Iterator[None]:
        assert self._successor is not None
        if len(events):
            yield from self._successor.add(self._named(events), self._limits.block)

    def _since(self) -> float:
        """The time before which a newest event makes a user or an item silent."""
        return min(self._state.clock, self._state.now) - self._limits.forget_after

    def _named(self, events: Events) -> EventColumns:
        users = list(map(self._state.users.name, events.users.tolist()))
        items = list(map(self._state.items.name, events.items.tolist()))
        return EventColumns(users, items, events.times, weights=events.weights)


def _discard(store: Replaceable) -> None:
    try:
        store.discard()
    except StoreError as error:
        _log.warning("what was built to let go of users is removed the next time: %s", error)


def check_letting_go(state: ServingState) -> None:
    """Raise ConfigError if users and items of a state cannot be let go while it serves."""
    if state.base != EMPTY_BASE and state.base_events is None:
        why = "the store started with the state of a run; give the training log of that run with --log"
        raise ConfigError(_REFUSED.format(why=why))
    if not isinstance(state.recommender, Servable):
        raise ConfigError(_REFUSED.format(why=f"{state.model.name} cannot do this; use felrec forget"))
