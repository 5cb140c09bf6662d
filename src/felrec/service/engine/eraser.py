"""Erases users, one at a time and in pieces, between which the ingest thread writes posts."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from dataclasses import replace

from felrec.abilities import Forgetting
from felrec.answers.types import Erasure
from felrec.errors import StoreError
from felrec.service.engine.committer import Committer
from felrec.service.engine.erasure import Piece, UserErasure
from felrec.service.engine.rebuilding import REBUILD, Rebuild
from felrec.service.engine.serving_state import ServingState
from felrec.store.protocol import ERASING, Removal, Unfinished

_log = logging.getLogger(__name__)


class Eraser:
    """Only the ingest thread uses it, and the start."""

    def __init__(self, committer: Committer, state: ServingState) -> None:
        self._committer, self._state = committer, state
        self._busy = False
        self._unfinished: UserErasure | None = None
        self.begun = 0  # erasures so far

    @property
    def busy(self) -> bool:
        """Whether an erasure is not finished."""
        return self._busy or self._unfinished is not None

    def resume(self, left: Unfinished) -> None:
        """Finish an erasure that a kill interrupted. If the store cannot be written, the next erasure finishes it."""
        self._unfinished = UserErasure(self._state, left, visible=False)
        try:
            for _ in self._pieces(self._unfinished):
                pass
        except StoreError as error:
            _log.warning("an interrupted erasure is not finished; the next erasure retries: %s", error)

    def erase(self, user: str) -> Generator[None, None, Erasure]:
        """Erase a user; each step is one piece. NotFound if the user is unknown.

        An erasure that failed, for example because the disk was full, is finished first.
        """
        while self._busy:
            yield
        self._busy = True
        try:
            if self._unfinished is not None:
                yield from self._finish(self._unfinished)
            row = self._state.known_row("user", user)
            erasure = UserErasure(self._state, self._state.index.erasure_of(row), visible=True)
            yield from self._finish(erasure)
            return erasure.erasure
        finally:
            self._busy = False

    def _finish(self, erasure: UserErasure) -> Iterator[None]:
        yield from self._pieces(erasure)
        if not isinstance(self._state.recommender, Forgetting):
            yield from self._rebuilt_model()

    def _pieces(self, erasure: UserErasure) -> Iterator[None]:
        self.begun += 1
        self._committer.rebuilding.stop()
        yield from self._committer.settle()
        while piece := erasure.plan():
            self._committer.remove(piece)
            self._unfinished = erasure
            yield
        notes = {ERASING: "", REBUILD: self._committer.rebuilding.want()}
        cleaned = self._committer.remove(Piece(Removal(notes=notes), lambda: None))
        erasure.erasure = replace(erasure.erasure, cleaned=cleaned)
        self._unfinished = None

    def _rebuilt_model(self) -> Iterator[None]:
        """Replace a model that cannot forget by one that applies the journal again."""
        rebuild = Rebuild(self._state)
        while not rebuild.step():
            yield
        self._state.replace_model(rebuild.model)
