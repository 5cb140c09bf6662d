"""Writes events to the store, then applies them in memory. Only the ingest thread calls it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, cast

from felrec.answers.types import Receipt, Rejected
from felrec.data.events import EventColumns, RowChange
from felrec.errors import Stopped, StoreError
from felrec.model.kernels.native.library import state_kernels
from felrec.service.engine.capacity import Capacity
from felrec.service.engine.erasure import Piece
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.item_attributes import to_store
from felrec.service.engine.limits import Limits
from felrec.service.engine.moving import CARRIED, FOLLOWS
from felrec.service.engine.outcomes import Awaited
from felrec.service.engine.rebuilding import REBUILD, WRITING, Rebuilding
from felrec.service.engine.refused import Source, refused_note
from felrec.service.engine.serving_state import Block, ServingState
from felrec.service.engine.state_saver import KERNELS, StateSaver
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.store.protocol import (
    ERASING,
    LET_GO,
    MOVED,
    Answered,
    Batch,
    Besides,
    Contents,
    Replaceable,
    Store,
    StoredReceipt,
)

_log = logging.getLogger(__name__)
_CATCH_UP = 64  # blocks applied between two reports of progress
_TELL = 2.0  # seconds between two lines of the log that say how far a start is
_OWN_NOTES = ERASING, REBUILD, KERNELS, LET_GO, MOVED, FOLLOWS, CARRIED  # of one store: no other one takes them over
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
    awaited: Awaited | None = None  # to be answered in the same transaction
    source: Source | None = None  # the stream it came from
    refused: Mapping[str, str] = field(default_factory=dict)  # the note of its rows that did not fit
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
        self.awaited: Awaited | None = None  # of the task at work: the next batch answers it

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
        notes |= {name: value for one in submissions for name, value in one.refused.items()}
        awaited = [(one.awaited, receipt) for one, receipt in zip(submissions, receipts, strict=True) if one.awaited]
        visible = 0
        if any(map(len, submissions)):
            numbering = self._state.numbering()
            columns = EventColumns.joined([one.events for one in submissions if len(one)]).blocks(self._block)
            blocks = [numbering.block(part) for part in columns]
            for block in self.committed(blocks, answers, notes, awaited):
                visible += len(block.events)
                self.commits.applied_seconds = time.perf_counter() - begun
                while waiting and waiting[0][0] <= visible:
                    yield waiting.popleft()[1]
        elif notes:  # only of what did not fit
            self._check()
            self._journal([], (), notes, awaited)
        yield from (receipt for _, receipt in waiting)

    def commit_blocks(self, blocks: Sequence[Block]) -> None:
        """Make blocks of a replay durable and visible."""
        for _ in self.committed(blocks):
            pass

    def become(self, other: Committer) -> None:
        """Go on with the store and the state of another one. If others share the store, StoreBusy changes nothing."""
        store = cast(Replaceable, self._store)
        with self._breaking() if store.alone else nullcontext():
            store.become(cast(Replaceable, other._store))
        with self._breaking():
            self._state.become(other._state)
            self.saver.become(other.saver)

    def committed(
        self,
        blocks: Sequence[Block],
        answers: Sequence[StoredReceipt] = (),
        notes: Mapping[str, str] | None = None,
        awaited: Sequence[tuple[Awaited, Receipt]] = (),
    ) -> Iterator[Block]:
        """Journal blocks in one transaction, then apply them; yields each once it is visible."""
        self._check()
        begun = time.perf_counter()
        change = self._state.change(blocks[0])  # the first may fail without harm; later ones need those before
        self.saver.worked(time.perf_counter() - begun)
        self._journal(blocks, answers, notes, awaited)
        for number, block in enumerate(blocks):
            begun = time.perf_counter()
            with self._breaking():
                self._apply(block, change if number == 0 else self._state.change(block))
            self.saver.worked(time.perf_counter() - begun)
            yield block

    def _journal(
        self,
        blocks: Sequence[Block],
        answers: Sequence[StoredReceipt],
        notes: Mapping[str, str] | None,
        awaited: Sequence[tuple[Awaited, Receipt]],
    ) -> None:
        """Make blocks durable together with what belongs to them, and with the answers to those who wait for them."""
        answered = [one.done(receipt) for one, receipt in awaited]
        self._commit(blocks, answers=answers, notes=notes, answered=answered)
        for one, _ in awaited:
            one.answered = True

    def _apply(self, block: Block, change: RowChange | None) -> None:
        """Make a block that is in the journal visible."""
        if change is not None:
            self.saver.about_to_change(change)
        self._state.apply_change(block, change)
        if change is not None:
            self.saver.applied = self._state.index.blocks

    def put_attributes(self, items: Mapping[str, Attributes | None]) -> dict[str, str]:
        """Write the attributes of items in one commit; None deletes an item. Returns why some do not fit, by id."""
        self._check()
        room = self._capacity.attributes_room()
        refused = {item: room.refusal(item, given) for item, given in items.items() if given is not None}
        fitting = {item: given for item, given in items.items() if refused.get(item) is None}
        if fitting:
            self._commit(attributes={item: to_store(given) for item, given in fitting.items()})
            with self._state.lock.write():
                for item, given in fitting.items():
                    self._state.attributes.put(item, self._state.items.row(item), given)
        return {item: reason for item, reason in refused.items() if reason is not None}

    def put_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes."""
        self._check()
        self._commit(notes=notes)

    def answer(self, answered: Sequence[Answered]) -> None:
        """Make the outcome of commands durable that had no effect, or whose effect already is."""
        self._check()
        self._commit(answered=answered)

    def finish(self, besides: Besides, seconds: float) -> None:
        """Called at the end of a replay: copy what the other store has besides its journal, and save the state."""
        self.carry_over(besides, seconds)
        if self._state.servable:
            self.saver.about_to_change(self._state.empty_rows())
        self.saver.save_all()

    def carry_over(self, besides: Besides, seconds: float) -> None:
        """Write what another store has besides its journal; `seconds` is its clock, by which its answers expire."""
        ahead = self._store.seconds() - seconds
        answers = [answer._replace(expires=answer.expires + ahead) for answer in besides.answers]
        notes = {name: value for name, value in besides.notes.items() if name not in _OWN_NOTES}
        self._commit(answers=answers, notes=notes, attributes=besides.attributes)

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
            refused = refused_note(one.source, rejected) if one.source and rejected else {}
            admitted.append(replace(one, events=events, rejected=ordered, refused=refused))
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
        answered: Sequence[Answered] = (),
    ) -> None:
        awaited, self.awaited = self.awaited, None
        batch = Batch(
            first_user=len(self._state.users),
            first_item=len(self._state.items),
            users=[name for block in blocks for name in block.users],
            items=[name for block in blocks for name in block.items],
            blocks=[block.events for block in blocks],
            answers=answers,
            attributes=attributes or {},
            notes=notes or {},
            answered=[*answered, awaited.done()] if awaited else answered,
        )
        with self._noticing():
            self._store.commit(batch)
        if awaited:
            awaited.answered = True

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
