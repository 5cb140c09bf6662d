"""The engine: one recommender, one store, one writer, many readers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from felrec.answers.types import Erasure, Item, Receipt, Rejected
from felrec.data.events import EventColumns
from felrec.errors import InvalidRequest, StoreLost
from felrec.fitted import FittedModel
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.committer import Committer, Progress, Submission
from felrec.service.engine.eraser import Eraser
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.identity import begin, check_identity
from felrec.service.engine.ingest import IngestThread
from felrec.service.engine.limits import Limits
from felrec.service.engine.read_only import COLD, ReadOnlyEngine
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Attributes, Health, IdempotencyKey
from felrec.store.protocol import Contents, Store

_log = logging.getLogger(__name__)


class Engine(ReadOnlyEngine):
    """Ingests events into a store and answers from memory. All methods may be called from any thread."""

    def __init__(
        self,
        store: Store,
        model: FittedModel,
        contents: Contents,
        limits: Limits,
        progress: Progress | None,
        clock: SteadyClock,
    ) -> None:
        """Use `Engine.open`."""
        state = ServingState(model, contents, clock.now)
        answers = IdempotencyStore(limits.answer_hours * 3_600, store)
        self._committer = Committer(store, state, answers, limits, contents.applied)
        self._committer.catch_up(contents, progress)
        self._eraser = Eraser(self._committer, state)
        if contents.unfinished:
            self._eraser.resume(contents.unfinished)
        super().__init__(state, limits)
        self._ingest = IngestThread(
            self._committer, answers, limits, (self._committer.saver, self._committer.rebuilding)
        )
        self._store = store
        self.notes = dict(contents.notes)  # as of the start: records of imports
        self.base = contents.identity.base  # the log and split whose state the store started with
        self.clock = clock
        self._started = clock.now()
        if problem := self._clock_problem():
            _log.warning(problem)
        _log.info("answers: %s", "compiled kernels" if state.scorer.prunes else "all items are scored, without kernels")

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
    ) -> Engine:
        """Open an engine on a store: `Engine.open(SqliteStore(path), runs.load(run))`.

        A new store starts with the model's state after validation, or empty if `empty`. An existing store restores its
        own state; StoreMismatch if it was made with another model or other weights. The engine then owns the model and
        the store, and closes the store when it is closed. `progress` receives the number of events that had to be
        applied again.
        """
        try:
            if store.is_empty:
                begin(store, model, empty=empty)
            contents = store.load()
            check_identity(store.name, contents.identity, model)
            behind = len(contents.blocks) - 1 - contents.applied
            if behind:
                _log.info("%s: applying %d blocks of the journal again", store.name, behind)
            return cls(store, model, contents, limits or Limits(), progress, clock or SteadyClock())
        except BaseException:
            store.close()
            raise

    def submit(
        self,
        events: EventColumns,
        key: IdempotencyKey | None = None,
        rejected: Sequence[Rejected] = (),
        notes: Mapping[str, str] | None = None,
    ) -> Future[Receipt]:
        """Ingest events; the future resolves once all are on disk and visible, or fails with StoreFull or KeyConflict.

        Raises InvalidRequest (too many events), Overloaded (`retry_after`), KeyConflict, Stopped. `rejected` are rows
        that the caller rejected; they are only listed in the receipt. At a limit of users, items or memory, rows with
        new ids are rejected too; if no row is left, nothing is stored and the receipt says so. The same key and body
        again return the first receipt. `notes` become durable together with the events.
        """
        if np.isinf(events.times).any():
            raise InvalidRequest("a time is infinite; give seconds since 1970")
        submission = Submission(events.in_time_order(self.clock.now()), tuple(rejected), key, notes or {})
        if not len(submission):
            submission.future.set_result(Receipt(0, 0, submission.rejected, self._state.events))
            return submission.future
        return self._ingest.submit(submission)

    def put_item(self, item: str, attributes: Attributes) -> Future[Item]:
        """Set all attributes of a known or new item; the future resolves when they are on disk.

        Raises InvalidRequest, and like `delete_item` and `erase_user` Overloaded (`retry_after`) and Stopped.
        The future fails with CapacityReached at a limit of items or memory.
        """
        if len(attributes.title or "") > self.limits.title_characters or len(attributes.tags) > self.limits.tags:
            most = f"{self.limits.title_characters:,} characters and {self.limits.tags} tags"
            raise InvalidRequest(f"the title or the list of tags is too long; at most {most}")

        def put() -> Item:
            self._committer.put_attributes(item, attributes)
            return self.item(item)

        return self._ingest.run(put)

    def delete_item(self, item: str) -> Future[None]:
        """Delete an item's attributes and do not recommend it until it is put again.

        Its events are kept: they belong to the histories of users. The future fails with NotFound if it is unknown.
        """

        def delete() -> None:
            self.item(item)
            self._committer.put_attributes(item, None)

        return self._ingest.run(delete)

    def erase_user(self, user: str) -> Future[Erasure]:
        """Remove a user's id, events, history and vector, also from free pages of the file.

        The id goes first. The rest follows in pieces, between which posts are written; then the future resolves. It
        fails with NotFound if the user is unknown. After the last erasure the state is rebuilt in the background.
        """
        return self._ingest.run(self._eraser.erase(user))

    def health(self) -> Health:
        """Status and statistics of the engine; never waits for the writer."""
        state, commits, trouble = self._state, self._committer.commits, self._store.trouble()
        work = self._exposure.work
        events = state.index.item_events
        problem = str(trouble) if trouble else commits.problem
        unready = "restart the service; its log says why" if self._committer.broken else None
        if isinstance(trouble, StoreLost):
            unready = "the files of its store were removed or replaced; put them back, then restart the service"
        return Health(
            ready=unready is None,
            unready=unready,
            durable=problem is None,
            problem=problem,
            model=state.model.name,
            events=state.events,
            journal=state.journal,
            users=state.users.known,
            items=state.items.known,
            described_items=len(state.attributes),
            users_limit=self.limits.users,
            items_limit=self.limits.items,
            memory_limit=self.limits.memory,
            cold_items=int(((events > 0) & (events < COLD)).sum()),
            queue_depth=self._ingest.waiting,
            queue_limit=self.limits.queue,
            clock=state.clock if state.events else 0.0,
            clock_problem=self._clock_problem(),
            last_commit_ms=1_000 * commits.seconds,
            commits=commits.count,
            unsaved_blocks=self._committer.saver.unsaved,
            answers=work.answers,
            items_scored=work.items_scored,
            pruned=state.scorer.prunes,
            last_batch_ms=1_000 * commits.applied_seconds,
            store_bytes=self._store.size(),
            rebuilding=self._committer.rebuilding.running,
            started=self._started,
        )

    def _clock_problem(self) -> str | None:
        return self.clock.problem(self._state.clock, self.limits.future_seconds)

    def close(self, drain: bool = True) -> None:
        """Accept no more events, process those in the queue (or fail them with Stopped), and close the store."""
        self._ingest.close(drain)
        self._scorer.close()
        self._committer.close()
        self._store.close()
