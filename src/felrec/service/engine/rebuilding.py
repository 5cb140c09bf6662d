"""Rebuild the model's state from the journal after an erasure, in the background.

An erasure leaves traces of the user in the state: vectors and counts of others were computed while the user existed.
A second model therefore applies the remaining journal from the start, in pieces, while the first one serves. Once it
has caught up it takes over, and its state is saved. From then on the state is exactly what `felrec replay` makes of
the journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from math import inf

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.abilities import Forgetting
from felrec.data.tables.table import RowsByTable
from felrec.recommender import Recommender, Servable, Tensors, usable
from felrec.service.engine.serving_state import ServingState, observe_alone
from felrec.service.engine.state_saver import StateSaver

REBUILD = "rebuild"  # the name of the note that says what is left to do: WANTED, WRITING or nothing
WANTED = "wanted"  # since an erasure, until the state of the second model is saved
WRITING = "writing"  # by felrec 0.2: some rows on disk are of the old model, so a start has to apply the whole journal
_SECONDS = 0.02  # about how long a piece takes
_RETRY = 60.0  # seconds until another attempt after a failure


class Rebuild:
    """A second model that catches up with the journal."""

    def __init__(self, state: ServingState) -> None:
        self._index, self.model = state.index, state.initial_model()
        self._observe = self.model.observe if state.servable else partial(observe_alone, self.model)
        self._block, self._clock = 0, state.base_clock

    def step(self) -> bool:
        """Apply a few blocks, at least one; returns whether the model has caught up."""
        until = time.perf_counter() + _SECONDS
        while self._block < self._index.blocks:
            self._apply_block()
            if time.perf_counter() >= until:
                break
        return self._block == self._index.blocks

    def _apply_block(self) -> None:
        events = self._index.block(self._block)
        self._block += 1
        if len(events):  # all events of a block may have been erased
            self._observe(usable(self.model, events.not_before(self._clock)))
            self._clock = max(self._clock, float(events.times.max()))


class Rebuilding:
    """Rebuilds the state when an erasure has made it inexact. Only the ingest thread calls its methods."""

    def __init__(self, state: ServingState, saver: StateSaver, pause: float) -> None:
        """`pause` is the time in seconds from an erasure to the rebuild: another erasure may follow."""
        self._state, self._saver, self._pause = state, saver, pause
        self._pieces: Iterator[None] = iter(())
        self._wanted = False
        self.due = inf  # when to call `step`, by the clock `time.monotonic`

    @property
    def running(self) -> bool:
        """Whether the state, in memory or on disk, is not yet that of a replay."""
        return self._wanted or not self._saver.notes_are_written

    def stop(self) -> None:
        """Give up what is under way, because an erasure begins."""
        self._pieces, self.due = iter(()), inf

    def want(self) -> str:
        """Rebuild from the start, because a user was erased. Returns the note that belongs into the store."""
        self._wanted = self._state.rebuildable and isinstance(self._state.recommender, Forgetting)
        self._begin(self._pause if self._wanted else inf)
        return WANTED if self._wanted else ""

    def step(self) -> bool:
        """Do one piece. The next is due after a pause as long as this one: others need the processor too."""
        begun, done = time.monotonic(), object()
        try:
            last = next(self._pieces, done) is done
        except BaseException:
            self._begin(_RETRY)
            raise
        self.due = inf if last else 2 * time.monotonic() - begun
        return True

    def resume(self, note: str, stored: Mapping[str, NDArray[np.generic]]) -> None:
        """Called at the start with the note and the state of the store, once the whole journal is applied."""
        if note == WRITING and self._state.rebuildable:
            self._take_over(self._state.recommender, stored)
        elif note:
            self.want()

    def _begin(self, pause: float) -> None:
        self._pieces = self._rebuilding()
        self.due = time.monotonic() + pause

    def _rebuilding(self) -> Iterator[None]:
        rebuild = Rebuild(self._state)
        yield
        while not rebuild.step():
            yield
        assert self._state.servable is not None
        self._take_over(rebuild.model, self._state.servable.view())

    def _take_over(self, model: Recommender, before: RowsByTable) -> None:
        """Serve with a model, and have its state saved in place of the one before."""
        assert isinstance(model, Servable)
        if any(len(before[name]) > len(rows) for name, rows in model.view().items()):
            model.load_state(padded(model.state(), before))  # seldom: a whole state is large
        self._state.replace_model(model)
        self._wanted = False
        self._saver.replaced({REBUILD: ""})


def padded(state: Tensors, other: RowsByTable) -> Tensors:
    """A state with the rows that only `other` has: the last rows may be of erased users and items."""
    more = {name: other[name][np.arange(len(rows), len(other[name]))] for name, rows in state.items()}
    return {name: torch.cat([rows, torch.from_numpy(more[name])]) for name, rows in state.items()}
