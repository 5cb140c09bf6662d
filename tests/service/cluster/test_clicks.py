"""Impressions and clicks with several engines on one store: any of them counts, all show the total."""

from __future__ import annotations

import pytest
from members import led_by_nobody, members, open_member, role, wait_until

from felrec.service.engine import feedback
from felrec.service.engine.click_counts import FEEDBACK
from felrec.service.engine.cluster import handing_in
from felrec.service.engine.cluster.member import Member
from felrec.store.protocol import Batch
from places import Place

pytestmark = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
Counted = dict[int, tuple[int, int]]


@pytest.fixture(autouse=True)
def hand_in_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (feedback, handing_in):
        monkeypatch.setattr(module, "HAND_IN", 0.1)


def ticket_of(member: Member, first: int) -> str:
    ticket = member.feedback.ticket("outside", first, 2)
    assert ticket is not None
    return ticket


def click(member: Member, ticket: str) -> None:
    """Report a click on the first of two places."""
    assert member.feedback.report(ticket, "click", 0)


def counted(member: Member) -> Counted:
    """Impressions and clicks by place."""
    shown, clicked = member.feedback.counts()["outside"]
    return {place: (shown[place], clicked[place]) for place in shown}


def kept(member: Member) -> Counted:
    """The same as the store has it, as this member knows."""
    counts = member.feedback.note.counts.arms["outside"]
    return {place: (counts.shown[place], counts.clicked[place]) for place in counts.shown}


def test_each_member_accepts_the_tickets_of_all_and_shows_the_clicks_of_all(place: Place) -> None:
    with members(place, 3) as (writer, one, other):
        everyone = (writer, one, other)
        for number, giver in enumerate(everyone):
            for first, taker in enumerate(everyone):
                click(taker, ticket_of(giver, 10 * number + first))
                assert counted(taker)[10 * number + first] == (1, 1)  # its own at once
        total = {10 * number + first: (1, 1) for number in range(3) for first in range(3)}
        wait_until(lambda: all(kept(member) == total for member in everyone))
        assert [member.feedback.stats() for member in everyone] == 3 * [writer.feedback.stats()]
        assert all(counted(member) == total for member in everyone)


def test_counts_survive_a_takeover_and_the_end_of_a_reader(place: Place) -> None:
    with members(place, 3) as (first, second, third):
        click(third, ticket_of(first, 7))
        third.close()  # the rest that it counted is in the inbox at least
        click(first, ticket_of(second, 1))
        first.close()
        click(second, ticket_of(second, 2))
        total = dict.fromkeys((7, 1, 2), (1, 1))
        wait_until(lambda: role(second) == "writer" and kept(second) == total)
    with members(place, 1) as (next_one,):
        assert counted(next_one) == total
        click(next_one, ticket_of(next_one, 3))
        assert counted(next_one) == total | {3: (1, 1)}


def test_counts_wait_for_a_writer_and_are_added_once(place: Place) -> None:
    with members(place, 1):
        pass
    with led_by_nobody(place) as stopped:
        reader = open_member(place)
        ended = open_member(place)
        for first, member in enumerate((reader, ended)):
            click(member, ticket_of(reader, first))
        ended.close()
        wait_until(lambda: reader._store.standing().inbox == 2)
        assert counted(reader) == {0: (1, 1)}
        stopped.resign()
        wait_until(lambda: role(reader) == "writer" and reader._store.standing().inbox == 0)
        wait_until(lambda: counted(reader) == kept(reader) == {0: (1, 1), 1: (1, 1)})
        reader.close()


def test_a_store_without_a_key_gets_one_that_all_members_use(place: Place) -> None:
    with members(place, 1):
        pass
    with led_by_nobody(place) as store:
        store.commit(Batch(notes={FEEDBACK: ""}))  # as one of an earlier version
        store.resign()
    with members(place, 2) as everyone:
        wait_until(lambda: all(member.feedback.ticket("outside", 0, 1) for member in everyone))
        writer, reader = everyone
        click(writer, ticket_of(reader, 0))
        click(reader, ticket_of(writer, 1))
        wait_until(lambda: kept(writer) == kept(reader) == {0: (1, 1), 1: (1, 1)})
