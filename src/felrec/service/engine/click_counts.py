"""Counts of impressions and clicks by arm and place, and the note of the store that keeps them."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from felrec.answers.statistics import ArmStats, PlaceStats, Share
from felrec.service.engine.proportions import Interval, share_of
from felrec.service.engine.tickets import ARMS, Arm

FEEDBACK = "feedback"  # the name of the note
SHOWN_PLACES = 20  # that statistics list one by one
_PROCESSES = 100  # whose last numbers the note has
_BY_PLACE = ("shown", "clicked")


@dataclass
class ArmCounts:
    """Counts of one arm: lists, and places by number."""

    lists: int = 0
    clicked_lists: int = 0
    shown: Counter[int] = field(default_factory=Counter)
    clicked: Counter[int] = field(default_factory=Counter)

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> ArmCounts:
        """The inverse of `kept`."""
        shown, clicked = (Counter({int(place): n for place, n in kept.get(name, {}).items()}) for name in _BY_PLACE)
        return cls(kept.get("lists", 0), kept.get("clicked_lists", 0), shown, clicked)

    def kept(self) -> dict[str, Any]:
        """As in the note."""
        return vars(self)

    def add(self, more: ArmCounts) -> None:
        """Add other counts."""
        self.lists += more.lists
        self.clicked_lists += more.clicked_lists
        self.shown.update(more.shown)
        self.clicked.update(more.clicked)

    def stats(self, arm: Arm) -> ArmStats:
        """As in an answer."""
        places = [(place, n) for place, n in sorted(self.shown.items()) if place < SHOWN_PLACES]
        by_place = (PlaceStats(place, *_share(self.clicked[place], n)) for place, n in places)
        total = Share(*_share(self.clicked.total(), self.shown.total()))
        return ArmStats(arm, Share(*_share(self.clicked_lists, self.lists)), total, tuple(by_place))


@dataclass
class Counts:
    """Counts of all arms, and the test that all of them but `outside` belong to."""

    share: float = 0.0  # of users with trending items; 0: of whatever test there is
    since: float | None = None
    arms: dict[Arm, ArmCounts] = field(default_factory=lambda: {arm: ArmCounts() for arm in ARMS})

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Counts:
        """The inverse of `kept`."""
        arms = {arm: ArmCounts.read(kept.get("arms", {}).get(arm, {})) for arm in ARMS}
        return cls(float(kept.get("share", 0)), kept.get("since"), arms)

    @classmethod
    def total(cls, parts: Iterable[Counts]) -> Counts:
        """The sum of some."""
        total = cls()
        for part in parts:
            total.add(part)
        return total

    def kept(self) -> dict[str, Any]:
        """As in the note."""
        arms = {arm: counts.kept() for arm, counts in self.arms.items()}
        return {"share": self.share, "since": self.since, "arms": arms}

    def begin(self, share: float, since: float | None) -> None:
        """Begin a test."""
        self.share, self.since = share, since
        self.arms |= {arm: ArmCounts() for arm in ARMS if arm != "outside"}

    def add(self, more: Counts) -> None:
        """Add other counts. Of two tests with different shares the one that began last counts."""
        arms = ARMS
        if more.share not in (0, self.share):
            if _time(more.since) > _time(self.since):
                self.begin(more.share, more.since)
            else:
                arms = ("outside",)
        for arm in arms:
            self.arms[arm].add(more.arms[arm])


class Counted(NamedTuple):
    """What a process has counted since the last time. It may be sent again: the number tells that it was added."""

    process: str
    number: int  # 1, 2, 3 …
    counts: dict[str, Any]  # as in the note


@dataclass(frozen=True)
class Note:
    """What the store keeps: the key of tickets, the counts, and the last number of each process that they include."""

    key: bytes | None = None  # none in a store of an earlier version, until somebody writes it
    counts: Counts = field(default_factory=Counts)
    numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def new(cls) -> Note:
        """Without counts. A store has one key, so that each process accepts the tickets of all."""
        return cls(_new_key())

    @classmethod
    def read(cls, text: str) -> Note:
        """The inverse of `text`; that of an empty text is without a key."""
        kept: dict[str, Any] = json.loads(text) if text else {}
        key = bytes.fromhex(kept["key"]) if kept else None
        return cls(key, Counts.read(kept), kept.get("numbers", {}))

    def text(self) -> str:
        """As in the store."""
        assert self.key is not None
        return json.dumps({"key": self.key.hex(), **self.counts.kept(), "numbers": self.numbers})

    def has(self, counted: Counted) -> bool:
        """Whether the counts include these."""
        return self.numbers.get(counted.process, 0) >= counted.number

    def plus(self, counted: Counted) -> Note:
        """With these counts."""
        others = [one for one in self.numbers.items() if one[0] != counted.process]
        numbers = dict([*others[1 - _PROCESSES :], (counted.process, counted.number)])
        return Note(self.key or _new_key(), Counts.total([self.counts, Counts.read(counted.counts)]), numbers)


def _new_key() -> bytes:
    return secrets.token_bytes(16)


def _time(since: float | None) -> float:
    return -inf if since is None else since


def _share(hits: int, of: int) -> tuple[int, int, float | None, float | None, float | None]:
    rate: Interval | tuple[None, None, None] = share_of(hits, of) or (None, None, None)
    return (hits, of, *rate)
