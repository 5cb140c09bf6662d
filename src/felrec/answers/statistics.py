"""Answers about the service: what became of its recommendations, and how it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from felrec.answers.types import Answer, Rejected, about

# What became of recommendations


@dataclass(frozen=True)
class FeedbackReceipt(Answer):
    """What became of reports of impressions and clicks."""

    accepted: int
    repeated: int = field(metadata=about("of the accepted ones: reported before, so not counted again"))
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True)
class Share(Answer):
    """A share with its 95 % interval (Wilson); null if there is nothing to divide by."""

    clicked: int
    of: int
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PlaceStats(Answer):
    """Click rate of one place of lists."""

    place: int = field(metadata=about("from 0, the best"))
    clicked: int
    of: int = field(metadata=about("impressions"))
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ArmStats(Answer):
    """Click rates of the lists of one arm."""

    arm: Literal["outside", "model", "trending"] = field(
        metadata=about("who made the lists of a test: the model, or trending items. outside: not part of a test")
    )
    lists: Share = field(metadata=about("lists with a click, of those that were shown"))
    impressions: Share = field(metadata=about("clicks, of all places that were shown"))
    places: tuple[PlaceStats, ...] = field(metadata=about("the first 20 places"))


@dataclass(frozen=True)
class Difference(Answer):
    """The difference of two shares, with its 95 % interval (Newcombe)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FeedbackStats(Answer):
    """What became of recommendations, as far as clients have reported it."""

    trending_share: float = field(metadata=about("of users who get trending items at the moment"))
    since: float | None = field(metadata=about("when the last test began, in seconds since 1970"))
    arms: tuple[ArmStats, ...] = field(metadata=about("arms with reports"))
    difference: Difference | None = field(metadata=about("share of lists with a click, model minus trending"))


# The service itself


@dataclass(frozen=True)
class Alive(Answer):
    """Whether the service is alive or ready, in one word."""

    status: str


@dataclass(frozen=True)
class Latency(Answer):
    """Of the last requests to a route, in milliseconds."""

    p50: float
    p99: float


@dataclass(frozen=True)
class Evenness(Answer):
    """How unevenly recent recommendations fall on the catalogue."""

    requests: int = field(metadata=about("how many recent answers this is about"))
    gini: float = field(metadata=about("of how often each item was recommended: 0 even, 1 all on one"))
    coverage: float = field(metadata=about("share of the catalogue that was recommended at all"))
    deciles: tuple[float, ...] = field(
        metadata=about("share of the recommendations by decile of items, most popular first")
    )


@dataclass(frozen=True)
class Membership(Answer):
    """A process among others with the same store."""

    role: Literal["writer", "reader"]
    writer: str = field(metadata=about("the name of the process that writes; empty: none at the moment"))
    behind: int = field(metadata=about("entries of the change log that this process has not applied yet"))
    age_ms: float = field(metadata=about("for how long its answers may have been out of date, in milliseconds"))
    inbox: int = field(metadata=about("writes that wait for the process that writes"))
    token: int = field(metadata=about("number of the lease of the process that writes: it grows with each change"))


@dataclass(frozen=True)
class EngineStats(Answer):
    """The numbers of the engine."""

    ready: bool
    durable: bool = field(metadata=about("whether the last write reached the disk"))
    problem: str | None = field(metadata=about("what the last failed write said, until one succeeds"))
    model: str
    events: int
    users: int
    items: int
    described_items: int = field(metadata=about("with a title, tags or availability, and deleted ones"))
    cold_items: int = field(metadata=about("with fewer than 5 events"))
    users_limit: int | None = field(metadata=about("new users beyond it are refused; null: no limit"))
    items_limit: int | None = field(metadata=about("new items beyond it are refused; null: no limit"))
    memory_limit: int | None = field(metadata=about("bytes of the process from which on new ones are refused"))
    queue_depth: int = field(metadata=about("events that wait"))
    queue_limit: int
    last_commit_ms: float
    last_batch_ms: float
    clock: float = field(metadata=about("time of the newest event"))
    clock_problem: str | None = field(metadata=about("what is wrong with the machine's clock, or the times of events"))
    store_bytes: int
    membership: Membership | None = field(metadata=about("null: no other process shares the store"))
    rebuilding: bool = field(metadata=about("whether the state will be rebuilt from the journal after an erasure"))


@dataclass(frozen=True)
class Stats(EngineStats):
    """The numbers of the service."""

    uptime_seconds: float
    events_per_second: float = field(metadata=about("over the last ten seconds"))
    latencies: dict[str, Latency] = field(metadata=about("by the last word of a route"))
    memory_bytes: int
    bias: Evenness
    feedback: FeedbackStats
