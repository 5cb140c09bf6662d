"""Members that share a store, in one process: each has its own connections, memory and threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from felrec.service.engine.cluster.member import Member
from felrec.service.engine.limits import Limits
from felrec.store.opening import open_store
from felrec.store.postgres import PostgresStore
from felrec.store.sqlite import SqliteStore
from places import Place
from stores import NO_REBUILD, digest, fitted

# A closed member gives its lease back, so it need not be short; a busy machine may hold a writer up for seconds.
QUICK = replace(NO_REBUILD, lease_seconds=3.0)


def open_member(place: Place, limits: Limits = QUICK, model: str = "felrec-s") -> Member:
    return Member.open(_opened(place), fitted(model), limits=limits, empty=True)


@contextmanager
def members(place: Place, count: int, limits: Limits = QUICK, model: str = "felrec-s") -> Iterator[list[Member]]:
    """Some members, of which the first one writes."""
    opened = [open_member(place, limits, model)]
    try:
        wait_until(lambda: role(opened[0]) == "writer")
        while len(opened) < count:
            opened.append(open_member(place, limits, model))
        yield opened
    finally:
        for member in opened:
            member.close(drain=False)


@contextmanager
def led_by_nobody(place: Place, seconds: float = 60.0) -> Iterator[SqliteStore | PostgresStore]:
    """A store whose lease a process has that does nothing, as one that is stopped."""
    with _opened(place) as store:
        wait_until(lambda: store.lead("a stopped process", seconds))
        yield store


def _opened(place: Place) -> SqliteStore | PostgresStore:
    return open_store(place.address, shared=True, namespace=place.namespace)


def role(member: Member) -> str:
    membership = member.health().membership
    assert membership is not None
    return membership.role


def state(member: Member) -> str:
    return digest(member._state.recommender)


def follows(reader: Member, writer: Member) -> bool:
    """Whether a reader has the same state as the writer."""
    return reader._state.journal == writer._state.journal and state(reader) == state(writer)


def replayed(place: Place) -> str:
    """The state that a model reaches with `observe` alone, given the journal of a store."""
    with place.alone("read") as store:
        contents = store.load()
    model, clock = fitted("felrec-s").recommender, contents.clock
    for events in contents.event_blocks:
        model.observe(events.not_before(clock))
        clock = max(clock, float(events.times.max()))
    return digest(model)


def wait_until(true: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
