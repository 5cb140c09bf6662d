"""What events are worth is the same for every member, whichever of them got the events, and after a restart."""

from __future__ import annotations

import json

import numpy as np
import pytest
from members import follows, members, replayed, state, wait_until

from felrec.data.kinds import KindTable
from felrec.service.http.event_parsing import read_events
from places import Place
from stores import made_up, post

TABLE = KindTable.parse("view=context,purchase=3,dislike=negative,spam=ignore,like=1")
WORTH = {"view": 0.0, "purchase": 3.0, "dislike": -1.0, "like": 1.0}
START, COUNT = 1.5e9, 300


def kind(second: int) -> str:
    return ("view", "purchase", "view", "dislike", "spam", "like", "like")[second % 7]


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_weights_of_events_posted_to_a_reader_reach_all_members_and_the_journal(place: Place) -> None:
    with members(place, 2) as (writer, reader):
        post(writer, made_up(20))  # events without weights, in the same journal
        for begin in range(0, COUNT, 100):
            seconds = range(begin + 99, begin - 1, -1)  # newest first: weights are sorted with their events
            rows = [
                {"user": f"user {n % 13}", "item": f"item {n % 11}", "timestamp": START + n, "kind": kind(n)}
                for n in seconds
            ]
            events = read_events(json.dumps(rows).encode(), lines=False, now=2e9, kinds=TABLE).events
            assert reader.submit(events).result(30).accepted == len(events) < 100
        wait_until(lambda: follows(reader, writer))
        online = state(writer)
    with place.alone("read") as store:
        journal = store.load().events
    assert journal.weights is not None
    expected = [WORTH[kind(n)] for n in range(COUNT) if kind(n) != "spam"]
    assert journal.times[20:].tolist() == [START + n for n in range(COUNT) if kind(n) != "spam"]
    assert np.isnan(journal.weights[:20]).all()
    assert journal.weights[20:].tolist() == expected
    assert online == replayed(place)
    with members(place, 2) as (writer, reader):
        assert state(writer) == state(reader) == online
