"""The events of the run whose state a store started with: the store has only pairs of them, the run's log has all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from felrec.data.events import Events, Rows
from felrec.data.log import InteractionLog
from felrec.errors import ConfigError
from felrec.store.protocol import EMPTY_BASE

IMPORTED = "import:"  # the beginning of the name of a note that records how much of a log a store has


def note_of(fingerprint: str) -> str:
    """The name of the note that records how much of a log a store has."""
    return f"{IMPORTED}{fingerprint}"


@dataclass(frozen=True)
class BaseEvents:
    """All events of a base, with the rows that they have in the store."""

    events: Events
    fingerprint: str  # of their log

    @classmethod
    def of(cls, base: str, log: InteractionLog) -> BaseEvents | None:
        """Of a store with this base; None if it started empty. ConfigError if it started with another log."""
        if base == EMPTY_BASE:
            return None
        if base.partition(":")[0] != log.fingerprint:
            raise ConfigError("--log is not the log that the store started with; give that log, unchanged")
        return cls(log.events[: min(len(log), int(base.rpartition(":")[2]))], log.fingerprint)

    def between(self, first: int, end: int, erased: Rows) -> Events:
        """Some of them, without those of erased users."""
        events = self.events[first:end]
        return events[np.flatnonzero(~np.isin(events.users, erased))]

    def note(self, notes: Mapping[str, str]) -> dict[str, str]:
        """Says that a store with these notes has them in its journal."""
        name = note_of(self.fingerprint)
        return {name: str(max(int(notes.get(name, 0)), len(self.events)))}
