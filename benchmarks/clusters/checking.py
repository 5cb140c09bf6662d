"""Checks that nothing acknowledged is lost or twice, and that all processes have the state of an offline replay."""

from __future__ import annotations

import hashlib

import numpy as np

from clusters.processes import Cluster
from clusters.world import START, World
from felrec.recommender import Recommender
from felrec.service.engine.serving_state import ServingState


def digest(recommender: Recommender) -> str:
    """The hash of a whole state."""
    state = sorted(recommender.state().items())
    return hashlib.sha256(b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in state)).hexdigest()


def check(world: World, cluster: Cluster) -> int:
    """Check a cluster that sends nothing; returns its number of events. AssertionError if anything is wrong."""
    cluster.quiet()
    digests = {process.ask("digest") for process in cluster.processes}
    with cluster.place.open() as store:
        findings, contents = store.verify(), store.load()
    assert not findings, findings
    there = (contents.events.times - START).astype(np.int64).tolist()
    known = set(there)
    assert len(known) == len(there), f"{len(there) - len(known)} events are there twice"
    for key, (first, size) in cluster.sent.submissions.items():
        found = sum(number in known for number in range(first, first + size))
        assert found in (0, size), f"{key} is there in part: {found} of {size}"
        assert found or key not in cluster.sent.done_at, f"{key} was acknowledged and is lost"
    online = ServingState(world.model(), contents)
    online.catch_up(contents.event_blocks[contents.applied :], contents.applied)  # as a start does
    offline, clock = world.model().recommender, contents.clock
    for events in contents.event_blocks:
        offline.observe(events.not_before(clock))
        clock = max(clock, float(events.times.max()))
    assert digest(online.recommender) == digest(offline), "the state on disk is not that of a replay"
    assert digests == {digest(offline)}, f"of the processes' states not all are that of a replay: {len(digests)} states"
    return len(there)
