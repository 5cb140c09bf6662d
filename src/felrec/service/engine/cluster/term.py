"""One term of the process that leads: it does its own writes and those in the inbox, until it loses the lease."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from felrec.errors import FelrecError, NotLeader, Overloaded, Stopped, StoreError, StoreUnreachable
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.cluster.change_log import TermStore
from felrec.service.engine.cluster.commands import Asked
from felrec.service.engine.cluster.encoding import decode
from felrec.service.engine.cluster.following import Follower
from felrec.service.engine.cluster.pending import Pending, Write
from felrec.service.engine.cluster.trimming import Trimming
from felrec.service.engine.engine import Engine, Writing
from felrec.service.engine.limits import Limits
from felrec.service.engine.outcomes import Awaited, read_outcome
from felrec.service.engine.rebuilding import REBUILD
from felrec.store.protocol import ERASING, Answered, Command, SharedStore, Standing

_log = logging.getLogger(__name__)
_MOST = 256  # commands that are read at a time
_WAIT = 0.05  # seconds to wait for a command, and for room in the queue


class Term:
    """Begins with a follower that has read the whole change log."""

    def __init__(
        self,
        store: SharedStore,
        follower: Follower,
        standing: Standing,
        limits: Limits,
        clock: SteadyClock,
        pending: Pending,
        send: Callable[[Write], None],
    ) -> None:
        """`send` is what is done with own writes that have had no effect when the term ends."""
        self.token = standing.token
        self._shared, self._follower, self._pending, self._send = store, follower, pending, send
        self._store = TermStore(store, follower.position, follower.last_erasure)
        trimming = Trimming(store, self._store)
        self.engine = Engine(self._writing(standing, limits), limits, clock, {}, (trimming,), follower.feedback)
        self._working: set[int] = set()  # commands of the inbox
        self._answers: deque[Answered] = deque()  # of commands whose outcome is not durable yet

    def _writing(self, standing: Standing, limits: Limits) -> Writing:
        """Go on with the state in memory. If an erasure is not finished, load it: its pieces are planned from disk."""
        notes, contents = self._shared.notes(), None
        if notes.get(ERASING) or notes.get(REBUILD):
            contents = self._follower.load_again()
        state = self._follower.state
        writing = Writing.of(self._store.as_store(), state, limits, standing.applied)
        writing.committer.saver.go_on(self._follower.unsaved.rows(), state.index.blocks)
        if contents is not None:
            writing.committer.rebuilding.resume(contents.notes.get(REBUILD, ""), contents.state)
            if contents.unfinished:
                writing.eraser.resume(contents.unfinished)
        return writing

    @property
    def over(self) -> bool:
        """Whether nothing more can be written, because the lease is lost or memory may be behind."""
        return self._store.over or self.engine.committer.broken

    def take(self, write: Write) -> bool:
        """Do a write of this process; returns False if the term is over."""
        try:
            future = write.command.do(self.engine, Awaited(write.id))
        except Stopped:
            return False
        future.add_done_callback(partial(self._own_ended, write))
        return True

    def _own_ended(self, write: Write, future: Future[Any]) -> None:
        match future.exception():
            case None:
                self._pending.done(write, future.result())
            case NotLeader() | Stopped():
                self._send(write)
            case StoreUnreachable():
                write.tried = self.token  # the change log will tell
            case error:
                self._pending.failed(write, error)

    def work(self) -> None:
        """Begin with what is in the inbox; waits for a moment if it is empty."""
        self._give_answers()
        for command in self._shared.commands(_MOST, tuple(self._working), _WAIT):
            if not self._begin(command):
                time.sleep(_WAIT)
                break

    def _begin(self, command: Command) -> bool:
        """Begin with a command; returns False if there is no room for it yet."""
        awaited = Awaited("", command.number)
        self._working.add(command.number)
        try:
            asked = decode(command.body, Asked)
            awaited.id = asked.id
            future: Future[Any] = asked.command.do(self.engine, awaited)
        except (Overloaded, Stopped):
            self._working.discard(command.number)
            return False
        except Exception as error:  # of one command: the others go on
            if _may_wait(awaited, error):
                self._working.discard(command.number)
                return False
            if not isinstance(error, FelrecError):
                _log.exception("a command of the inbox cannot be done")
            self._answers.append(awaited.refused(error))
            return True
        future.add_done_callback(partial(self._ended, awaited))
        return True

    def _ended(self, awaited: Awaited, future: Future[Any]) -> None:
        error = future.exception()
        if isinstance(error, NotLeader | StoreUnreachable | Stopped):
            return  # the next writer finds it in the inbox, unless its effect is durable
        if _may_wait(awaited, error):
            self._working.discard(awaited.number)
            return
        outcome = awaited.done(future.result()) if error is None else awaited.refused(error)
        if awaited.answered:
            self._are_durable([outcome])
        else:
            self._answers.append(outcome)

    def _give_answers(self) -> None:
        """Make the outcome of commands durable that their own transactions did not have."""
        answers = [self._answers.popleft() for _ in range(len(self._answers))]
        if not answers:
            return
        try:
            self.engine.answer(answers).result()
        except Overloaded:
            self._answers.extend(answers)
        else:
            self._are_durable(answers)

    def _are_durable(self, answers: Sequence[Answered]) -> None:
        self._working.difference_update(one.number for one in answers)
        for one in answers:  # it may have been sent by this process, before it led
            self._pending.heard(read_outcome(one.text))

    def end(self, drain: bool) -> None:
        """Stop writing, and leave to the follower what it needs to go on."""
        self._store.over = self._store.over or not drain
        self.engine.stop(drain)
        self._follower.go_on(self._store.position, self._store.last_erasure, self.engine.committer.saver)
        self._follower.moved = self._store.moved


def _may_wait(awaited: Awaited, error: BaseException | None) -> bool:
    """Whether a command stays in the inbox until the store can be written again.

    One that nobody waits for, as of a stream, would not be sent again.
    """
    return isinstance(error, StoreError) and not awaited.id
