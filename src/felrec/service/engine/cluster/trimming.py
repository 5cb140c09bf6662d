"""Drops old entries of the change log."""

from __future__ import annotations

import time

from felrec.service.engine.cluster.change_log import TermStore
from felrec.store.protocol import SharedStore

_EVERY = 5.0  # seconds between two looks at the change log
_KEEP = 8_192  # entries that stay; a process that is further behind loads everything again
_ERASED_STAY = 10.0  # seconds for which followers may still read the entries before an erasure


class Trimming:
    """Work in the background of the ingest thread."""

    def __init__(self, store: SharedStore, term: TermStore) -> None:
        self._store, self._term = store, term
        self._erasure, self._erased_at = 0, 0.0  # the newest piece that was seen, and when
        self.due = time.monotonic() + _EVERY

    def step(self) -> bool:
        """Trim the log. After an erasure all older entries go, because they have the ids that were erased."""
        now, keep = time.monotonic(), _KEEP
        self.due = now + _EVERY
        if self._term.last_erasure != self._erasure:
            self._erasure, self._erased_at = self._term.last_erasure, now
        elif now >= self._erased_at + _ERASED_STAY:
            keep = min(keep, self._term.position - self._erasure)
        if not self._term.over:
            self._store.trim(keep)
        return True
