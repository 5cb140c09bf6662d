"""Metrics for Prometheus at /metrics, and the recent rates and latencies for the page."""

from __future__ import annotations

import math
import time
from collections import Counter as Counts
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from felrec.answers.statistics import Latency, Membership
from felrec.service.engine.click_counts import SHOWN_PLACES
from felrec.service.engine.tickets import Arm
from felrec.service.http.logs import dropped_lines

if TYPE_CHECKING:
    from felrec.service.engine.types import Health

ByArm = Mapping[Arm, tuple[Counts[int], Counts[int]]]
"""Impressions and clicks of each arm, by place."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
RECENT = 1000  # latencies kept per route
WINDOW = 10.0  # seconds over which the event rate is averaged


class Metrics:
    """Counters of one service, in its own registry, so that a process can have several."""

    def __init__(
        self, health: Callable[[], Health], audit_dropped: Callable[[], int], feedback: Callable[[], ByArm]
    ) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "felrec_request_seconds",
            "Time to answer a request.",
            ("method", "route", "status"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.events = Counter("felrec_events", "Events acknowledged, including repeated posts.", registry=self.registry)
        self.late = Counter("felrec_late_events", "Of these, events older than the newest.", registry=self.registry)
        self.rejected = Counter("felrec_rejected_rows", "Rejected rows of posts.", registry=self.registry)
        self.refused = Counter(
            "felrec_refused_requests",
            "Requests answered with 408, 429, 431, 503 or 507.",
            ("status",),
            registry=self.registry,
        )
        self.registry.register(_State(health, audit_dropped))
        self.registry.register(_Feedback(feedback))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._observers: dict[tuple[str, str, int], Histogram] = {}
        self._latencies: dict[str, deque[float]] = {}
        self._arrivals: deque[tuple[float, int]] = deque()

    def finished(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        named = method if method in METHODS else "other"  # clients must not choose label values
        self._observer(named, route, status).observe(seconds)
        if status in (429, 503, 507):
            self.was_refused(status)
        elif status < 400 and (named := _last_word(route)):
            self._latencies.setdefault(named, deque(maxlen=RECENT)).append(seconds)

    def _observer(self, method: str, route: str, status: int) -> Histogram:
        """The histogram of some requests, found without checking its labels again."""
        labels = method, route, status
        if labels not in self._observers:
            self._observers[labels] = self.requests.labels(method, route, str(status))
        return self._observers[labels]

    def was_refused(self, status: int) -> None:
        """Count a refused request."""
        self.refused.labels(str(status)).inc()

    def took(self, accepted: int, late: int, rejected: int) -> None:
        """Count the rows of a post."""
        self.events.inc(accepted)
        self.late.inc(late)
        self.rejected.inc(rejected)
        now = time.monotonic()
        self._arrivals.append((now, accepted))
        while self._arrivals[0][0] < now - WINDOW:
            self._arrivals.popleft()

    def events_per_second(self) -> float:
        """The rate over the last seconds. May be called from any thread."""
        oldest = time.monotonic() - WINDOW
        return sum(events for at, events in list(self._arrivals) if at >= oldest) / WINDOW

    def latencies(self) -> dict[str, Latency]:
        """Median and 99th percentile of the last requests in milliseconds, by the last word of their route."""
        return {
            route: Latency(float(np.percentile(taken, 50)) * 1e3, float(np.percentile(taken, 99)) * 1e3)
            for route, taken in ((route, list(taken)) for route, taken in list(self._latencies.items()))
        }

    def exposition(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return generate_latest(self.registry)


@cache
def _last_word(route: str) -> str:
    """The last fixed word of an API route; empty for the page and its files.

    >>> _last_word("/v1/items/{id}/similar"), _last_word("/v1/users/{id}"), _last_word("/"), _last_word("none")
    ('similar', 'users', '', '')
    """
    words = [word for word in route.split("/")[1:] if word and not word.startswith("{")]
    return words[-1] if words else ""


class _State(Collector):
    """Gauges and counters that are read from the engine and the audit log on collection."""

    def __init__(self, health: Callable[[], Health], audit_dropped: Callable[[], int]) -> None:
        self.health, self.audit_dropped = health, audit_dropped

    def describe(self) -> list[Metric]:
        """Empty, because registering must not query the engine."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One gauge per value of the engine's health."""
        health = self.health()
        for name, text, value in (
            ("ready", "1 if the service accepts requests.", health.ready),
            ("durable", "0 if the last write did not reach the disk.", health.durable),
            (
                "clock_right",
                "0 if the machine's clock jumped or is behind the newest event.",
                not health.clock_problem,
            ),
            ("queue_depth", "Events queued to be made durable.", health.queue_depth),
            ("queue_limit", "Queue length beyond which posts are answered with 429.", health.queue_limit),
            (
                "pruned",
                "1 if compiled kernels find the best items without scoring all.",
                health.pruned,
            ),
            ("items", "Items in the catalogue.", health.items),
            ("users", "Known users.", health.users),
            ("described_items", "Items with attributes, and deleted ones.", health.described_items),
            ("users_limit", "Known users beyond which new ones are refused.", _or_infinite(health.users_limit)),
            ("items_limit", "Items beyond which new ones are refused.", _or_infinite(health.items_limit)),
            ("memory_limit_bytes", "Memory beyond which new ids are refused.", _or_infinite(health.memory_limit)),
            ("cold_items", "Items with fewer than five events.", health.cold_items),
            ("store_events", "Events in the store.", health.events),
            ("store_bytes", "Size of the store.", health.store_bytes),
            ("unsaved_blocks", "Blocks that a start would have to apply again.", health.unsaved_blocks),
            ("rebuilding", "1 from an erasure until the state is rebuilt from the journal.", health.rebuilding),
            ("last_commit_seconds", "Duration of the last commit.", health.last_commit_ms / 1e3),
            (
                "last_batch_seconds",
                "Time from dequeuing the last micro-batch until it was visible.",
                health.last_batch_ms / 1e3,
            ),
        ):
            yield GaugeMetricFamily(f"felrec_{name}", text, float(value))
        if health.membership:
            yield from _membership(health.membership)
        scored = "Scores computed for an answer: with compiled kernels a few hundred, else one for each item."
        yield SummaryMetricFamily("felrec_items_scored", scored, health.answers, float(health.items_scored))
        yield CounterMetricFamily("felrec_commits", "Transactions since the start.", float(health.commits))
        yield CounterMetricFamily("felrec_audit_dropped", "Entries missing from the audit log.", self.audit_dropped())
        yield CounterMetricFamily(
            "felrec_dropped_log_lines", "Log lines that could not be written in time.", float(dropped_lines())
        )


class _Feedback(Collector):
    """Counters of reported impressions and clicks, by arm and place."""

    def __init__(self, counts: Callable[[], ByArm]) -> None:
        self.counts = counts

    def describe(self) -> list[Metric]:
        """Empty, as that of the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All counts; places far down a list are counted together."""
        labels = ("arm", "position")
        shown = CounterMetricFamily("felrec_impressions", "Reported impressions of recommendations.", labels=labels)
        clicked = CounterMetricFamily("felrec_clicks", "Reported clicks on recommendations.", labels=labels)
        for arm, counts in self.counts().items():
            for family, by_place in zip((shown, clicked), counts, strict=True):
                near = {str(place): n for place, n in sorted(by_place.items()) if place < SHOWN_PLACES}
                far = sum(n for place, n in by_place.items() if place >= SHOWN_PLACES)
                for position, n in near.items():
                    family.add_metric((arm, position), n)
                if far:
                    family.add_metric((arm, f"{SHOWN_PLACES}+"), far)
        return iter((shown, clicked))


def _membership(membership: Membership) -> Iterator[Metric]:
    """Gauges of a process that shares its store with others."""
    for name, text, value in (
        ("writer", "1 if this process writes, 0 if it follows the one that does.", membership.role == "writer"),
        ("lag_blocks", "Entries of the change log that this process has not applied.", membership.behind),
        ("lag_milliseconds", "For how long its answers may have been out of date.", membership.age_ms),
        ("inbox_depth", "Writes that wait for the process that writes.", membership.inbox),
        ("lease_token", "Number of the lease of the process that writes.", membership.token),
    ):
        yield GaugeMetricFamily(f"felrec_{name}", text, float(value))


def _or_infinite(limit: int | None) -> float:
    return math.inf if limit is None else limit
