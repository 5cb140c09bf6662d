"""Saves the rows of the model's state from time to time. The journal has every event, so no post waits for this.

While a save is under way, events go on changing rows. A row that is still to be written is copied before it changes, so
that what is saved is the state after one block of the journal.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from math import inf

import numpy as np

from felrec.data.events import RowChange
from felrec.errors import StoreError
from felrec.model.kernels.native.library import state_kernels
from felrec.service.engine.changed_rows import ChangedRows, Save
from felrec.service.engine.freed_memory import give_back_memory
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import ServingState
from felrec.store.protocol import Store

_log = logging.getLogger(__name__)
KERNELS = "kernels"  # the name of the note that says what computed the rows of the state
_SHARE = 10  # a save is not followed by another one for so many times its own duration
_PAUSE = 2.0  # times as long as a piece is the pause after it
_DISK = 0.005  # seconds until another look whether the disk has caught up
_RETRY = 10.0  # seconds until another attempt after a failed write


class StateSaver:
    """Only the ingest thread uses it, and the start. `saved` and `applied` may be read by any thread."""

    def __init__(self, store: Store, state: ServingState, limits: Limits, applied: int) -> None:
        self._store, self._state = store, state
        self._seconds, self._work_limit = limits.save_seconds, limits.save_work
        self._changed = ChangedRows()
        self._rows = dict(state.stored_rows)  # of each table that are saved or to be saved
        self._save: Save | None = None  # under way
        self._notes: dict[str, str] = {}  # to be written with the next save
        self._work = 0.0  # seconds that a start would need to compute what is not saved
        self._not_before = 0.0  # of the next save, by the clock `time.monotonic`, like the next two
        self._save_at = inf  # when to begin a save
        self._go_on_at = inf  # when to go on with what is under way
        self.saved = self.applied = applied  # blocks that the state on disk includes, and that in memory

    @property
    def due(self) -> float:
        """When to call `step`, by the clock `time.monotonic`."""
        return min(self._save_at, self._go_on_at)

    @property
    def unsaved(self) -> int:
        """Number of blocks that the state in memory includes and that on disk does not."""
        return max(0, self.applied - self.saved)

    @property
    def notes_are_written(self) -> bool:
        """Whether the state that `replaced` was told about is on disk."""
        return not self._notes

    def about_to_change(self, change: RowChange) -> None:
        """Called before rows are changed in memory; then `applied` is set."""
        if self._save is not None:
            self._save.keep(change, self._state)
        if not self._changed:
            self._save_in(self._seconds)
        self._changed.add(change)
        self._changed.add(self._skipped(change))

    def _skipped(self, change: RowChange) -> RowChange:
        """The new rows that a change leaves blank, because the model was not shown the events of their ids."""
        skipped = RowChange()
        for name, (rows, values) in change.items():
            first, end = self._rows.get(name, 0), int(rows[-1]) + 1 if len(rows) else 0
            if end > first:
                self._rows[name] = end
                skipped[name] = np.arange(first, end, dtype=np.int32), values
        return skipped

    def worked(self, seconds: float) -> None:
        """Called after blocks were applied, with the time it took."""
        self._work += seconds
        if self._work >= self._work_limit:
            self._save_in(0.0)

    def replaced(self, notes: Mapping[str, str]) -> None:
        """Called after the model was replaced: all rows are to be saved, and these notes with the last of them."""
        self._save, self._notes = None, {**self._notes, **notes}
        assert self._state.servable is not None
        self._changed.add_tables(self._state.servable.view())
        self._save_in(0.0)

    def unsaved_rows(self) -> ChangedRows:
        """The rows that differ from those on disk, or may: the disk has the state after `saved` blocks."""
        rows = self._changed.copy()
        if self._save is not None:
            rows.add_all(self._save.rows)
        return rows

    def go_on(self, unsaved: ChangedRows, applied: int) -> None:
        """Called at the start of a term: what was changed in memory before, and is not on disk."""
        self._changed.add_all(unsaved)
        self.applied = applied
        if self._changed:
            self._save_in(self._seconds)

    def become(self, other: StateSaver) -> None:
        """Go on with what another one has to save; the store and the state are those of the other one now."""
        self._changed, self._save, self._notes, self._work = other._changed, None, {}, 0.0
        self.saved, self.applied = other.saved, other.applied
        self._go_on_at, self._save_at = inf, time.monotonic() + self._seconds if self._changed else inf

    def step(self) -> bool:
        """Do one piece. The next is due after a pause: posts wait for a piece, and others need the processor too.

        Returns False if the disk is still busy with the piece before.
        """
        begun = time.monotonic()
        if self._store.writing:
            self._go_on_at, self._save_at = begun + _DISK, max(self._save_at, begun + _DISK)
            return False
        if self._save is not None or begun >= self._save_at:
            self._step()
            more = True
        else:
            more = self._tidy()
        ended = time.monotonic()
        self._go_on_at = ended + _PAUSE * (ended - begun) if more else inf
        return True

    def finish(self) -> Iterator[None]:
        """Save everything, in pieces. Events may be applied in between."""
        while self._save or self._changed:
            self._step()
            yield

    def save_all(self) -> None:
        """Save everything now."""
        for _ in self.finish():
            pass

    def save_if_due(self) -> None:
        """Save everything now if it is time to; a failure is logged, because the journal has the events."""
        if time.monotonic() >= self.due:
            try:
                self.save_all()
                while self._tidy():
                    pass
            except StoreError as error:
                _log.warning("the state was not saved; it will be tried again: %s", error)

    def _save_in(self, seconds: float) -> None:
        self._save_at = min(self._save_at, max(time.monotonic() + seconds, self._not_before))

    def _step(self) -> None:
        """Write a piece of a save."""
        if self._save is None:
            self._save = Save(self._changed, self.applied)
            self._changed, self._work, self._save_at = ChangedRows(), 0.0, inf
        save, begun = self._save, time.monotonic()
        try:
            rows = save.next_rows(self._state)
            if rows is not None:
                self._store.save(rows)
            else:
                self._store.save({}, save.applied, {KERNELS: state_kernels(), **self._notes})
        except BaseException:
            self._give_up(save)
            raise
        save.seconds += time.monotonic() - begun
        if rows is None:
            self._save, self._notes, self.saved = None, {}, save.applied
            self._not_before = time.monotonic() + _SHARE * save.seconds
            self._save_at = max(self._save_at, self._not_before)
            give_back_memory()  # copies of rows are gone; it takes about 2 ms

    def _give_up(self, save: Save) -> None:
        self._save = None
        self._changed.add_all(save.rows)
        self._save_at, self._go_on_at = time.monotonic() + _RETRY, inf

    def _tidy(self) -> bool:
        try:
            return self._store.tidy()
        except BaseException:
            self._go_on_at = time.monotonic() + _RETRY
            raise
