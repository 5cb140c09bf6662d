"""Writes events to the store, then applies them in memory. Only the ingest thread calls it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from felrec.answers.types import Receipt, Rejected
from felrec.data.events import EventColumns, RowChange
from felrec.errors import Stopped, StoreError
from felrec.model.kernels.native.library import state_kernels
from felrec.service.engine.capacity import Capacity
from felrec.service.engine.erasure import Piece
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.item_attributes import to_store
from felrec.service.engine.limits import Limits
from felrec.service.engine.rebuilding import REBUILD, WRITING, Rebuilding
from felrec.service.engine.serving_state import Block, ServingState
from felrec.service.engine.state_saver import KERNELS, StateSaver
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.store.protocol import Batch, Contents, Store, StoredReceipt

_log = logging.getLogger(__name__)
_CATCH_UP = 64  # blocks applied between two reports of progress
_TELL = 2.0  # seconds between two lines of the log that say how far a start is
_OTHER_KERNELS = (
    "%s: the last %d blocks are applied again by other kernels (%s) than before (%s): vectors and counts may differ in"
    " their last bits"
)
Progress = Callable[[int], None]  # receives the number of events applied


@dataclass(frozen=True)
class Submission:
    """Events in time order that become durable together or not at all."""

    events: EventColumns
    rejected: tuple[Rejected, ...] = ()  # rows that the caller rejected: only listed in the receipt
    key: IdempotencyKey | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    future: Future[Receipt] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.events)


@dataclass
class Commits:
    """Statistics of the writes so far."""

    count: int = 0
    seconds: float = 0.0  # duration of the last write
    applied_seconds: float = 0.0  # duration of the last batch until it was visible
    problem: str | None = None  # why the last write failed, if it did


class Committer:
    """Writes the journal, then changes memory. The rows of the state are saved from time to time (`saver`).

    The journal is authoritative; the state is derived from it. A start applies the blocks that were not saved.
    """

    def __init__(
        self, store: Store, state: ServingState, answers: IdempotencyStore, limits: Limits, applied: int
    ) -> None:
        self._store, self._state, self._answers, self._block = store, state, answers, limits.block
        self._capacity = Capacity(limits, state)
        self.saver = StateSaver(store, state, limits, applied)
        self.rebuilding = Rebuilding(state, self.saver, limits.rebuild_after)
        self._broken: str | None = None
        self.commits = Commits()

    def catch_up(self, contents: Contents, progress: Progress | None = None) -> None:
        """Called at the start: apply the blocks of the journal that the state does not include."""
        blocks, begin = contents.event_blocks, contents.applied
        note, made_by = contents.notes.get(REBUILD, ""), contents.notes.get(KERNELS, state_kernels())
        if begin < len(blocks) and made_by != state_kernels():
            _log.warning(_OTHER_KERNELS, self._store.name, len(blocks) - begin, state_kernels(), made_by)
        if note == WRITING and self._state.rebuildable:  # killed while the state was replaced: it is a mixture
            self._state.load_base()
            begin = 0
        told = time.monotonic()
        for first in range(begin, len(blocks), _CATCH_UP):
            behind, begun = blocks[first : first + _CATCH_UP], time.perf_counter()
            self._state.catch_up(behind, first, self.saver.about_to_change)
            self.saver.applied = first + len(behind)
            self.saver.worked(time.perf_counter() - begun)
            self.saver.save_if_due()
            if progress:
                progress(sum(map(len, behind)))
            if time.monotonic() > told + _TELL:
                told = time.monotonic()
                _log.info("%s: %d of %d blocks are applied", self._store.name, first + len(behind), len(blocks))
        self.rebuilding.resume(note, contents.state)

    def commit(self, submissions: Sequence[Submission]) -> Iterator[Receipt]:
        """Make submissions durable together; yields the receipt of each, in order, once it is visible.

        Rows with new ids for which there is no room are rejected. Of a submission of such rows alone nothing is stored.
        """
        begun = time.perf_counter()
        submissions = self._admitted(submissions)
        receipts, answers = self._receipts(submissions)
        waiting = deque(zip(accumulate(map(len, submissions)), receipts, strict=True))  # by the events up to their end
        notes = {name: value for one in submissions if len(one) for name, value in one.notes.items()}
        visible = 0
        if any(map(len, submissions)):
            numbering = self._state.numbering()
            columns = EventColumns.joined([one.events for one in submissions if len(one)]).blocks(self._block)
            for block in self._committed([numbering.block(part) for part in columns], answers, notes):
                visible += len(block.events)
                self.commits.applied_seconds = time.perf_counter() - begun
                while waiting and waiting[0][0] <= visible:
                    yield waiting.popleft()[1]
        yield from (receipt for _, receipt in waiting)

    def commit_blocks(self, blocks: Sequence[Block]) -> None:
        """Make blocks of a replay durable and visible."""
        for _ in self._committed(blocks):
            pass

    def _committed(
        self, blocks: Sequence[Block], answers: Sequence[StoredReceipt] = (), notes: Mapping[str, str] | None = None
    ) -> Iterator[Block]:
        """Journal blocks in one transaction, then apply them; yields each once it is visible."""
        self._check()
        begun = time.perf_counter()
        change = self._state.change(blocks[0])  # the first may fail without harm; later ones need those before
        self.saver.worked(time.perf_counter() - begun)
        self._commit(blocks, answers=answers, notes=notes)
        for number, block in enumerate(blocks):
            begun = time.perf_counter()
            with self._breaking():
                self._apply(block, change if number == 0 else self._state.change(block))
            self.saver.worked(time.perf_counter() - begun)
            yield block

    def _apply(self, block: Block, change: RowChange | None) -> None:
        """Make a block that is in the journal visible."""
        if change is not None:
            self.saver.about_to_change(change)
        self._state.apply_change(block, change)
        if change is not None:
            self.saver.applied = self._state.index.blocks

    def put_attributes(self, item: str, attributes: Attributes | None) -> None:
        """Write the attributes of an item; None deletes it."""
        self._check()
        if attributes is not None:
            self._capacity.check_item(item, attributes)
        self._commit(attributes={item: to_store(attributes)})
        with self._state.lock.write():
            self._state.attributes.put(item, self._state.items.row(item), attributes)

    def finish(
        self, attributes: Mapping[str, Mapping[str, Any]], answers: Sequence[StoredReceipt], notes: Mapping[str, str]
    ) -> None:
        """Called at the end of a replay: copy what the other store has besides its journal."""
        self._commit(answers=answers, notes=notes, attributes=attributes)
        if self._state.servable:
            self.saver.about_to_change(self._state.empty_rows())
        self.saver.save_all()

    def close(self) -> None:
        """Save the state, as far as that is possible: the journal has all events."""
        try:
            if not self.broken:
                self.saver.save_all()
        except StoreError as error:
            _log.warning("the state was not saved; the next start applies the last events again: %s", error)

    def settle(self) -> Iterator[None]:
        """Called before an erasure: save the state, in pieces, so that no piece of the erasure takes long."""
        yield from self.saver.finish()
        while self._store.tidy(everything=True):
            yield

    def remove(self, piece: Piece) -> bool:
        """Write a piece of an erasure to the store, then apply it in memory. Returns whether old pages are gone."""
        self._check()
        with self._noticing():
            self.saver.save_all()  # the rows of a piece include all blocks
            cleaned = self._store.erase(piece.removal)
        with self._breaking():
            piece.apply()
        return cleaned

    def _admitted(self, submissions: Sequence[Submission]) -> Sequence[Submission]:
        """The submissions without the rows that do not fit."""
        room = self._capacity.room()
        if room.fits(sum(map(len, submissions))):
            return submissions
        admitted = []
        for one in submissions:
            events, rejected = room.admit(one.events)
            ordered = tuple(sorted([*one.rejected, *rejected], key=lambda row: row.row))
            admitted.append(replace(one, events=events, rejected=ordered))
        return admitted

    def _receipts(self, submissions: Sequence[Submission]) -> tuple[list[Receipt], list[StoredReceipt]]:
        receipts, answers = [], []
        clock, events = self._state.clock, self._state.events
        for one in submissions:
            late = int((one.events.times < clock).sum())
            events += len(one)
            receipts.append(Receipt(len(one), late, one.rejected, events))
            clock = max(clock, float(one.events.times.max(initial=clock)))
            if one.key and len(one):
                answers.append(self._answers.answer(one.key, receipts[-1]))
        return receipts, answers

    def _commit(
        self,
        blocks: Sequence[Block] = (),
        answers: Sequence[StoredReceipt] = (),
        notes: Mapping[str, str] | None = None,
        attributes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        batch = Batch(
            first_user=len(self._state.users),
            first_item=len(self._state.items),
            users=[name for block in blocks for name in block.users],
            items=[name for block in blocks for name in block.items],
            blocks=[block.events for block in blocks],
            answers=answers,
            attributes=attributes or {},
            notes=notes or {},
        )
        with self._noticing():
            self._store.commit(batch)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Record the duration of a write, or why it failed."""
        begun = time.perf_counter()
        try:
            yield
        except StoreError as error:
            self.commits.problem = str(error)
            raise
        self.commits.count += 1
        self.commits.seconds = time.perf_counter() - begun
        self.commits.problem = None

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Refuse further writes after a failure to apply in memory what is on disk."""
        try:
            yield
        except BaseException as error:
            self._broken = f"{type(error).__name__}: {error}"
            raise

    @property
    def broken(self) -> bool:
        """Whether memory is behind the disk, which only a restart fixes."""
        return self._broken is not None

    def _check(self) -> None:
        if self._broken is not None:
            raise Stopped(f"restart the engine: it could not apply events that are on disk ({self._broken})")
