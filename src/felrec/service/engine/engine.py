"""The engine: one recommender, one store, one writer, many readers."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice

import numpy as np

from felrec.answers.types import Erasure, Item, Receipt, Rejected
from felrec.data.events import EventColumns
from felrec.data.log import InteractionLog
from felrec.errors import CapacityReached, EngineError, InvalidRequest, Stopped, StoreError
from felrec.fitted import FittedModel
from felrec.service.engine.base_events import BaseEvents
from felrec.service.engine.click_counts import FEEDBACK, Counted
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.cluster.left_over import do_left_over
from felrec.service.engine.committer import Committer, Progress, Submission
from felrec.service.engine.eraser import Eraser
from felrec.service.engine.feedback import Feedback, FeedbackSaver
from felrec.service.engine.health import health_of
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.identity import begin, check_identity
from felrec.service.engine.ingest import Background, IngestThread
from felrec.service.engine.letting_go import LettingGo
from felrec.service.engine.limits import Limits
from felrec.service.engine.moving import Moved, refuse_moved
from felrec.service.engine.outcomes import Awaited
from felrec.service.engine.read_only import ReadOnlyEngine
from felrec.service.engine.refused import Source
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Attributes, Health, IdempotencyKey
from felrec.store.protocol import MOVED, Answered, Contents, Store

_log = logging.getLogger(__name__)
_PUT_TOGETHER = 100  # items put in one commit: readers and posts wait for it


@dataclass(frozen=True)
class Writing:
    """What changes a state and its store. Only the ingest thread uses it, and the start."""

    store: Store
    state: ServingState
    answers: IdempotencyStore
    committer: Committer
    eraser: Eraser

    @classmethod
    def of(cls, store: Store, state: ServingState, limits: Limits, saved: int) -> Writing:
        """For a state of which the store has the rows after so many blocks."""
        answers = IdempotencyStore(limits.answer_hours * 3_600, store)
        committer = Committer(store, state, answers, limits, saved)
        return cls(store, state, answers, committer, Eraser(committer, state))


class Engine(ReadOnlyEngine):
    """Ingests events into a store and answers from memory. All methods may be called from any thread."""

    def __init__(
        self,
        writing: Writing,
        limits: Limits,
        clock: SteadyClock,
        notes: Mapping[str, str],
        more_work: Sequence[Background] = (),
        feedback: Feedback | None = None,
    ) -> None:
        """Use `Engine.open`. `more_work` is done in the background, by the ingest thread."""
        super().__init__(writing.state, limits)
        self._store, self._committer, self._eraser = writing.store, writing.committer, writing.eraser
        self.feedback = feedback or Feedback(notes.get(FEEDBACK, ""), clock.now)
        self._feedback_saver = FeedbackSaver(self.feedback, self._committer.put_notes)
        self._letting_go = LettingGo(writing.store, writing.state, self._committer, self._eraser, limits)
        own_work = self._committer.saver, self._committer.rebuilding, self._feedback_saver, self._letting_go
        self._ingest = IngestThread(self._committer, writing.answers, limits, (*own_work, *more_work))
        self.notes = dict(notes)  # as of the start: records of imports
        self.base = self._state.base  # the log and split whose state the store started with
        self.clock = clock
        self._started = clock.now()
        if problem := clock.problem(self._state.clock, limits.future_seconds):
            _log.warning(problem)
        kernels = "compiled kernels" if self._state.scorer.prunes else "all items are scored, without kernels"
        _log.info("answers: %s", kernels)

    @classmethod
    def open(
        cls,
        store: Store,
        model: FittedModel,
        *,
        limits: Limits | None = None,
        empty: bool = False,
        progress: Progress | None = None,
        clock: SteadyClock | None = None,
        log: InteractionLog | None = None,
    ) -> Engine:
        """Open an engine on a store: `Engine.open(SqliteStore(path), runs.load(run))`.

        A new store starts with the model's state after validation, or empty if `empty`. An existing store restores its
        own state; StoreMismatch if it was made with another model or other weights. The engine then owns the model and
        the store, and closes the store when it is closed. `progress` receives the number of events that had to be
        applied again. `log` is the one of the run that the store started with: users and items of such a store can only
        be let go with it.
        """
        try:
            if store.is_empty:
                begin(store, model, empty=empty)
            contents = store.load()
            refuse_moved(store.name, contents.notes)
            check_identity(store.name, contents.identity, model)
            behind = len(contents.blocks) - 1 - contents.applied
            if behind:
                _log.info("%s: applying %d blocks of the journal again", store.name, behind)
            engine = cls.of(store, model, contents, limits or Limits(), clock or SteadyClock(), progress, log)
            do_left_over(engine, contents.inbox)
            return engine
        except BaseException:
            store.close()
            raise

    @classmethod
    def of(
        cls,
        store: Store,
        model: FittedModel,
        contents: Contents,
        limits: Limits,
        clock: SteadyClock,
        progress: Progress | None = None,
        log: InteractionLog | None = None,
    ) -> Engine:
        """Continue from what is in a store."""
        state = ServingState(model, contents, clock.now)
        state.base_events = BaseEvents.of(state.base, log) if log is not None else None
        writing = Writing.of(store, state, limits, contents.applied)
        writing.committer.catch_up(contents, progress)
        if contents.unfinished:
            writing.eraser.resume(contents.unfinished)
        return cls(writing, limits, clock, contents.notes)

    def submit(
        self,
        events: EventColumns,
        key: IdempotencyKey | None = None,
        rejected: Sequence[Rejected] = (),
        notes: Mapping[str, str] | None = None,
        *,
        durable: bool = False,
        awaited: Awaited | None = None,
        source: Source | None = None,
    ) -> Future[Receipt]:
        """Ingest events; the future resolves once all are on disk and visible, or fails with StoreFull or KeyConflict.

        Raises InvalidRequest (too many events), Overloaded (`retry_after`), KeyConflict, Stopped. `rejected` are rows
        that the caller rejected; they are only listed in the receipt. At a limit of users, items or memory, rows with
        new ids are rejected too; if no row is left, nothing is stored and the receipt says so. The same key and body
        again return the first receipt. `notes` become durable together with the events. `durable` is for a member of a
        cluster: here events are visible as soon as they are durable. Of a `source`, rows that are rejected at a limit
        are kept in a note.
        """
        if np.isinf(events.times).any():
            raise InvalidRequest("a time is infinite; give seconds since 1970")
        ordered = events.in_time_order(self.clock.now())
        submission = Submission(ordered, tuple(rejected), key, notes or {}, awaited, source)
        if not len(submission):
            submission.future.set_result(Receipt(0, 0, submission.rejected, self._state.events))
            return submission.future
        return self._ingest.submit(submission)

    def put_item(self, item: str, attributes: Attributes, *, awaited: Awaited | None = None) -> Future[Item]:
        """Set all attributes of a known or new item; the future resolves when they are on disk.

        Raises InvalidRequest, and like `put_items`, `delete_item` and `erase_user` Overloaded (`retry_after`) and
        Stopped. The future fails with CapacityReached at a limit of items or memory.
        """
        self._check_length(attributes)

        def put() -> Item:
            for reason in self._committer.put_attributes({item: attributes}).values():
                raise CapacityReached(reason)
            return self.item(item)

        return self._ingest.run(put, awaited)

    def put_items(self, items: Mapping[str, Attributes]) -> Future[dict[str, str]]:
        """Set all attributes of many items; the future resolves when they are on disk, with the reasons of refusals.

        An item is refused at a limit of items or memory. Written in pieces, between which posts are: after a failure
        some items may be written, and to put all of them again does no harm.
        """
        if len(items) > self.limits.submission:
            raise InvalidRequest(f"{len(items):,} items; put at most {self.limits.submission:,} at a time")
        for attributes in items.values():
            self._check_length(attributes)

        def put() -> Generator[None, None, dict[str, str]]:
            refused, left = dict[str, str](), iter(items.items())
            while piece := dict(islice(left, _PUT_TOGETHER)):
                refused |= self._committer.put_attributes(piece)
                yield
            return refused

        return self._ingest.run(put())

    def _check_length(self, attributes: Attributes) -> None:
        if len(attributes.title or "") > self.limits.title_characters or len(attributes.tags) > self.limits.tags:
            most = f"{self.limits.title_characters:,} characters and {self.limits.tags} tags"
            raise InvalidRequest(f"the title or the list of tags is too long; at most {most}")

    def delete_item(self, item: str, *, awaited: Awaited | None = None) -> Future[None]:
        """Delete an item's attributes and do not recommend it until it is put again.

        Its events are kept: they belong to the histories of users. The future fails with NotFound if it is unknown.
        """

        def delete() -> None:
            self.item(item)
            self._committer.put_attributes({item: None})

        return self._ingest.run(delete, awaited)

    def erase_user(self, user: str) -> Future[Erasure]:
        """Remove a user's id, events, history and vector, also from free pages of the file.

        The id goes first. The rest follows in pieces, between which posts are written; then the future resolves. It
        fails with NotFound if the user is unknown. After the last erasure the state is rebuilt in the background.
        """
        return self._ingest.run(self._eraser.erase(user))

    def count(self, counted: Counted, *, awaited: Awaited | None = None) -> Future[None]:
        """Add impressions and clicks that another process counted, once."""
        return self._ingest.run(lambda: self._feedback_saver.add(counted), awaited)

    def answer(self, answered: Sequence[Answered]) -> Future[None]:
        """Make the outcome of commands durable that their own transactions did not have, or that were refused."""
        return self._ingest.run(lambda: self._committer.answer(answered))

    def move(self, to: Moved, *, awaited: Awaited | None = None) -> Future[None]:
        """Note that another store takes the place of this one: nothing can be written any more.

        Only in a cluster, whose members then go on with the other one. The future fails with EngineError during an
        erasure, which the other store could not finish.
        """

        def move() -> None:
            if self._eraser.busy:
                raise EngineError("a user is being erased at this moment; try again when that is done")
            self._committer.put_notes({MOVED: to.note()})

        return self._ingest.run(move, awaited)

    def health(self) -> Health:
        """Status and statistics of the engine; never waits for the writer."""
        return health_of(
            self._state,
            self._store,
            self.limits,
            self._exposure,
            self.clock,
            started=self._started,
            queue_depth=self.waiting,
            committer=self._committer,
        )

    @property
    def age(self) -> float | None:
        """For how many seconds answers may have been out of date; None: never, because no other process writes."""
        return None

    @property
    def committer(self) -> Committer:
        """Statistics of its writes; only the ingest thread changes it."""
        return self._committer

    @property
    def waiting(self) -> int:
        """Events in the queue."""
        return self._ingest.waiting

    def close(self, drain: bool = True) -> None:
        """Accept no more events, process those in the queue (or fail them with Stopped), and close the store."""
        self.stop(drain)
        self._store.close()

    def stop(self, drain: bool = True) -> None:
        """Like `close`, but the store stays open."""
        self._ingest.close(drain)
        self._letting_go.close()
        self._scorer.close()
        self._save_feedback()
        self._committer.close()

    def _save_feedback(self) -> None:
        try:
            self._feedback_saver.save()
        except (StoreError, Stopped) as error:
            _log.warning("the last reports of impressions and clicks were not saved: %s", error)
