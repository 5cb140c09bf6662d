"""An engine that shares its store with others: it answers from memory, follows the writer, and may become it."""

from __future__ import annotations

import logging
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from math import inf
from queue import SimpleQueue
from typing import Any

from felrec.answers.statistics import Membership
from felrec.answers.types import (
    Erasure,
    Item,
    Receipt,
    Rejected,
)
from felrec.data.events import EventColumns
from felrec.data.log import InteractionLog
from felrec.errors import (
    ChangesTrimmed,
    FelrecError,
    InvalidRequest,
    Overloaded,
    Stopped,
    StoreError,
    StoreMoved,
    StoreUnreachable,
)
from felrec.fitted import FittedModel
from felrec.service.engine.base_events import BaseEvents
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.cluster.commands import (
    Command,
    Count,
    DeleteItem,
    EraseUser,
    Post,
    PutItem,
    PutItems,
    to_inbox,
)
from felrec.service.engine.cluster.following import Follower
from felrec.service.engine.cluster.handing_in import HandingIn
from felrec.service.engine.cluster.lease_keeper import LeaseKeeper
from felrec.service.engine.cluster.pending import Pending, Write
from felrec.service.engine.cluster.succeeding import NotComplete, open_successor
from felrec.service.engine.cluster.term import Term
from felrec.service.engine.engine import Engine
from felrec.service.engine.health import health_of
from felrec.service.engine.idempotency import without_body
from felrec.service.engine.identity import begin
from felrec.service.engine.letting_go import check_letting_go
from felrec.service.engine.limits import Limits
from felrec.service.engine.moving import Moved
from felrec.service.engine.outcomes import read_outcome
from felrec.service.engine.read_only import ReadOnlyEngine
from felrec.service.engine.types import Attributes, Health, IdempotencyKey
from felrec.store.protocol import SharedStore

_log = logging.getLogger(__name__)
_WAIT = 0.25  # seconds to wait for an entry of the change log
_MOST = 256  # entries that are read at a time
_RETRY = 0.5  # seconds until another attempt after the store failed
_MOVING = 0.05  # seconds until a write is tried again while this process goes over to another store
_DRAIN = 5.0  # seconds for which a closing member waits for answers of the writer


class Member(ReadOnlyEngine):
    """Has the methods of `Engine`. A write of a process that does not lead goes through the inbox of the store."""

    def __init__(self, store: SharedStore, follower: Follower, limits: Limits, clock: SteadyClock) -> None:
        """Use `Member.open`."""
        super().__init__(follower.state, limits)
        self._store, self._follower, self.clock = store, follower, clock
        self.notes, self.base = dict(follower.notes), follower.state.base  # as of the start, like those of an engine
        self._started = clock.now()
        self.feedback = follower.feedback
        self._counts = HandingIn(self.feedback, lambda counted, durable: self._write(Count(counted), durable))
        self._pending, self._outbox = Pending(self), SimpleQueue[Write | None]()
        self._term: Term | None = None
        self._appending = threading.Lock()  # held while the outbox uses the store
        self._stuck = ""  # why this process cannot go on with the store that took the place of its own
        self._closing, self._drain, self._closed_at = threading.Event(), True, 0.0
        self._current_at = time.monotonic()  # when memory was last known to be as new as the store
        self._keeper = LeaseKeeper(store, limits.lease_seconds, store.standing(), self._beat)
        targets = {"felrec-member": self._run, "felrec-outbox": self._append}
        self._threads = [threading.Thread(target=run, name=name, daemon=True) for name, run in targets.items()]
        for thread in self._threads:
            thread.start()

    @classmethod
    def open(
        cls,
        store: SharedStore,
        model: FittedModel,
        *,
        limits: Limits | None = None,
        empty: bool = False,
        clock: SteadyClock | None = None,
        log: InteractionLog | None = None,
    ) -> Member:
        """Open a member on a store that others may have open; see `Engine.open`."""
        limits, clock = limits or Limits(), clock or SteadyClock()
        try:
            while store.is_empty:  # of all processes that start together, one fills it
                if store.lead(f"begin-{secrets.token_hex(4)}", limits.lease_seconds):
                    if store.is_empty:
                        begin(store, model, empty=empty)
                    store.resign()
                else:
                    time.sleep(limits.lease_seconds / 10)
            follower = Follower(store, model, clock.now)
            state = follower.state
            state.base_events = BaseEvents.of(state.base, log) if log is not None else None
            if limits.forget_after < inf:
                check_letting_go(state)
            return cls(store, follower, limits, clock)
        except BaseException:
            store.close()
            raise

    # Writes

    def submit(
        self,
        events: EventColumns,
        key: IdempotencyKey | None = None,
        rejected: Sequence[Rejected] = (),
        notes: Mapping[str, str] | None = None,
        *,
        durable: bool = False,
    ) -> Future[Receipt]:
        """Ingest events; the future resolves once they are on disk and visible in this process.

        With `durable` it resolves once they are on disk; such a receipt does not say which were late or did not fit.
        Unanswered if the writer is silent for too long; else see `Engine.submit`.
        """
        ordered = events.in_time_order(self.clock.now())
        if len(ordered) > self.limits.submission:
            raise InvalidRequest(f"{len(ordered)} events; send at most {self.limits.submission:,} at a time")
        post = Post(ordered, without_body(key) if key else None, tuple(rejected), notes or {})
        if not len(ordered):
            nothing: Future[Receipt] = Future()
            nothing.set_result(Receipt(0, 0, post.rejected, self._state.events))
            return nothing
        return self._write(post, durable)

    def put_item(self, item: str, attributes: Attributes) -> Future[Item]:
        """Set all attributes of a known or new item; see `Engine.put_item`."""
        return self._write(PutItem(item, attributes))

    def put_items(self, items: Mapping[str, Attributes]) -> Future[dict[str, str]]:
        """Set all attributes of many items; see `Engine.put_items`."""
        return self._write(PutItems(dict(items)))

    def delete_item(self, item: str) -> Future[None]:
        """Delete an item's attributes and do not recommend it until it is put again; see `Engine.delete_item`."""
        return self._write(DeleteItem(item))

    def erase_user(self, user: str) -> Future[Erasure]:
        """Remove a user; see `Engine.erase_user`. If the writer dies meanwhile, the next one finishes the erasure."""
        return self._write(EraseUser(user))

    def _write(self, command: Command, durable: bool = False) -> Future[Any]:
        if self._closing.is_set():
            raise Stopped("the engine is shutting down; send this again later")
        if time.monotonic() - self._keeper.contact > 2 * self.limits.lease_seconds:
            raise StoreUnreachable(f"{self._store.name} cannot be reached, so nothing was stored")
        if len(self._pending) >= self.limits.pending or self._keeper.standing.inbox >= self.limits.inbox:
            raise Overloaded("too many writes wait for the process that writes; retry in 1 s", 1.0)
        write = Write(secrets.token_hex(8), command, durable)
        self._pending.add(write)
        try:
            self._send(write)
        except BaseException:
            self._pending.remove(write)
            raise
        return write.future

    def _send(self, write: Write) -> None:
        """Do a write if this process leads; else put it into the inbox."""
        term = self._term
        if term is None or not term.take(write):
            self._outbox.put(write)

    def _append(self) -> None:
        """A thread: put writes into the inbox, which waits for the disk."""
        while (write := self._outbox.get()) is not None:
            try:
                write.stored = self._appended(write)
            except Exception as error:
                self._pending.failed(write, error)
                continue
            if write.stored and write.durable:
                self._pending.done(write, self._receipt(write.command))

    def _receipt(self, command: Command) -> Receipt | None:
        """The answer to a command that is durable and not done yet."""
        if isinstance(command, Post):
            return Receipt(len(command.events), 0, command.rejected, self._state.events)
        return None

    def _appended(self, write: Write) -> bool:
        """Put a write into the inbox; returns False if its client does not wait any more.

        If another store has taken the place of this one, it waits until this process goes on with that.
        """
        while self._pending.has(write):
            try:
                with self._appending:
                    self._store.append(*to_inbox(write.command, write.id))
            except StoreMoved:
                if self._closing.wait(_MOVING):
                    raise
            else:
                return True
        return False

    def _beat(self) -> None:
        self._pending.give_up(self.limits.answer_seconds)
        if self._term is None and not self._closing.is_set():  # the ingest thread of a term does it itself
            self._counts.step_if_due()

    # Following and leading

    def _run(self) -> None:
        """The thread that changes memory, or has a term's ingest thread do it."""
        while not self._closing.is_set() or (self._drain and self._waits()):
            try:
                self._follow()
                if self._closing.is_set():
                    continue
                if self._follower.moved:
                    self._move(self._follower.moved)
                else:
                    self._lead()
            except ChangesTrimmed as behind:
                _log.warning("%s", behind)
                self._load_again()
            except StoreError as error:
                _log.warning("cannot follow at the moment: %s", error)
                self._closing.wait(_RETRY)
            except Exception:
                _log.exception("this process cannot follow; it loads everything again")
                self._load_again()

    def _waits(self) -> bool:
        """Whether a closing member still waits for answers of another process."""
        return len(self._pending) > 0 and time.monotonic() < self._closed_at + _DRAIN

    def _load_again(self) -> None:
        self._keeper.withdraw()  # a process that loads cannot lead
        try:
            self._follower.load_again()
            self._follower.skip()
        except StoreError as error:
            _log.warning("cannot load at the moment: %s", error)
            self._closing.wait(_RETRY)

    def _follow(self) -> None:
        """Apply what the writer did, until all is applied and this process has the lease, or the store has moved."""
        if self.limits.may_lead and not self._closing.is_set() and not self._follower.moved:
            self._keeper.stand()
        while not self._closing.is_set() or self._waits():
            self._decide()
            entries = self._store.changes(self._follower.position, 0.0 if self._keeper.held else _WAIT, _MOST)
            seen = time.monotonic()
            for entry in entries:
                for text in self._follower.apply(entry):
                    self._pending.heard(read_outcome(text))
            if len(entries) < _MOST:
                self._current_at = seen
            self._follower.were_saved(self._keeper.standing)
            if not entries and (self._keeper.held or self._follower.moved):
                return

    def _decide(self) -> None:
        """Send writes again whose outcome was unknown, once it is known that they have had no effect.

        A commit of a term cannot become durable once there is a newer one; what did is in the change log by then.
        """
        standing = self._keeper.standing
        if self._follower.position >= standing.change:
            for write in self._pending.undecided(standing.token):
                write.tried = None
                self._send(write)

    def _lead(self) -> None:
        standing = self._store.standing()  # after the lease was taken: nobody else adds to the change log
        if not self._keeper.held or standing.change != self._follower.position:
            return
        term = Term(self._store, self._follower, standing, self.limits, self.clock, self._pending, self._outbox.put)
        self._term = term
        _log.info("this process writes from now on, as %s", self._keeper.name)
        try:
            while self._keeper.held and not term.over and not self._closing.is_set():
                term.work()
        finally:
            self._term = None
            term.end(drain=self._closing.is_set() and self._drain)
            self._keeper.withdraw()
            self._current_at = time.monotonic()
            _log.info("this process does not write any more")
        if term.engine.committer.broken:
            self._load_again()

    def _move(self, moved: Moved) -> None:
        """Go on with the store that has taken the place of this one; until it is loaded, memory answers as before."""
        self._keeper.withdraw()
        try:
            store, follower = open_successor(moved, self._store, self.clock.now)
        except NotComplete as error:
            self._stuck = str(error)
            self._closing.wait(_MOVING)
            return
        except (FelrecError, OSError) as error:
            stuck = f"it cannot go on with {moved.location.name} and {moved.run}: {error}"
            if stuck != self._stuck:
                _log.warning("%s; it tries again", stuck)
            self._stuck = stuck
            self._closing.wait(_RETRY)
            return
        follower.succeed(self._follower)
        self._keeper.close()
        with self._appending:
            left, self._store, self._follower = self._store, store, follower
            self._keeper = LeaseKeeper(store, self.limits.lease_seconds, store.standing(), self._beat)
        left.close()
        self.base, self._stuck, self._current_at = self._state.base, "", time.monotonic()
        _log.info("this process goes on with %s and %s", store.name, moved.run)
        for write in self._pending.undecided(sys.maxsize):  # in the change log of the old store they would have been
            write.tried = None
            self._send(write)

    # Status

    @property
    def age(self) -> float:
        """For how many seconds memory may have been behind the store."""
        return 0.0 if self._keeper.held else time.monotonic() - self._current_at

    def health(self) -> Health:
        """Status and statistics; never waits for the store."""
        term, standing, age = self._term, self._keeper.standing, self.age
        committer = term.engine.committer if term else None
        unready = None
        if age > self.limits.behind_seconds:
            unready = self._stuck or f"{age:.0f} s behind the store, or without contact to it"
        waiting = term.engine.waiting if term else len(self._pending)
        membership = Membership(
            role="writer" if term and self._keeper.held else "reader",
            writer=standing.leader,
            behind=0 if term else max(0, standing.change - self._follower.position),
            age_ms=round(1_000 * age, 1),
            inbox=standing.inbox,
            token=standing.token,
        )
        return health_of(
            self._state,
            self._store,
            self.limits,
            self._exposure,
            self.clock,
            started=self._started,
            queue_depth=waiting,
            committer=committer,
            membership=membership,
            unready=unready,
        )

    def close(self, drain: bool = True) -> None:
        """Accept no more writes, wait for the answers of those that are under way, and close the store."""
        if self._closing.is_set():
            return
        if drain and self._term is None:
            self._counts.finish(_DRAIN)
        self._drain, self._closed_at = drain, time.monotonic()
        self._closing.set()
        self._threads[0].join()
        self._keeper.close()
        self._outbox.put(None)
        self._threads[1].join()
        self._pending.give_up(0.0)
        self._scorer.close()
        self._store.close()


AnyEngine = Engine | Member
"""What a service needs: an engine alone with its store, or one of several."""
