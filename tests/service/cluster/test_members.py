"""Several engines with one store: one writes, the others follow, and any of them accepts writes."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from functools import partial

import pytest
from members import QUICK, follows, led_by_nobody, members, open_member, replayed, role, state, wait_until

from felrec.data.events import EventColumns
from felrec.errors import InvalidRequest, KeyConflict, NotFound, Unanswered
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Attributes, IdempotencyKey
from places import Place
from stores import digest, fitted, made_up, post, submit

pytestmark = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)


def recommends(member: Member, item: str) -> bool:
    return item in [one.id for one in member.recommend("user 3", 40).items]


def forgot(member: Member, user: str) -> bool:
    return not member.known("user", [user])


def test_a_member_sees_its_own_writes_and_soon_those_of_others(place: Place) -> None:
    with members(place, 3) as (writer, one, other):
        for number, member in enumerate([writer, one, other, one]):
            receipt = post(member, [("ada", f"item {number}", 1e9 + number), *made_up(300, seed=number)])
            assert (receipt.accepted, receipt.events) == (301, 301 * (number + 1))
            assert f"item {number}" in [entry.id for entry in member.user("ada").history]
        wait_until(lambda: follows(one, writer) and follows(other, writer))
        assert [entry.id for entry in other.user("ada").history] == [f"item {number}" for number in (3, 2, 1, 0)]
        online = state(writer)
    assert online == replayed(place)


def test_a_new_item_is_recommended_by_another_member(place: Place) -> None:
    with members(place, 2) as (writer, reader):
        post(writer, made_up(500))
        for giver, other in ((writer, reader), (reader, writer)):
            new = f"new from {role(giver)}"
            post(giver, [(f"user {n}", new) for n in range(20)])
            wait_until(partial(recommends, other, new))


def test_items_are_put_and_deleted_through_any_member(place: Place) -> None:
    with members(place, 2) as (writer, reader):
        assert reader.put_item("tea", Attributes("Tea", ("drink",))).result(30).title == "Tea"
        wait_until(lambda: writer.search_items("Tea"))
        assert reader.put_items({"jam": Attributes("Jam"), "rye": Attributes("Rye")}).result(30) == {}
        wait_until(lambda: [one.id for one in reader.search_items("")] == [one.id for one in writer.search_items("")])
        reader.delete_item("tea").result(30)
        with pytest.raises(NotFound):
            reader.item("tea")
        wait_until(lambda: not writer.search_items("Tea"))  # it tells the others before its own memory changes


def test_an_error_of_the_writer_reaches_the_client_of_a_reader(place: Place) -> None:
    with members(place, 2) as (_, reader):
        with pytest.raises(NotFound):
            reader.delete_item("nothing").result(30)
        with pytest.raises(NotFound):
            reader.erase_user("nobody").result(30)
        with pytest.raises(InvalidRequest, match="title"):
            reader.put_item("tea", Attributes("T" * 2_000)).result(30)
        with pytest.raises(InvalidRequest, match="infinite"):
            post(reader, [("ada", "tea", math.inf)])
        assert post(reader, [("ada", "tea", 1e9)]).accepted == 1  # the errors have left the inbox
        wait_until(lambda: not reader._store.standing().inbox)


def test_an_idempotency_key_counts_for_all_members(place: Place) -> None:
    key = IdempotencyKey("k", b"body")
    with members(place, 2) as (writer, reader):
        first = post(reader, made_up(10), key)
        assert post(writer, made_up(10), key) == post(reader, made_up(10), key) == first
        with pytest.raises(KeyConflict):
            post(reader, made_up(9), IdempotencyKey("k", b"another"))
        together = [submit(one, made_up(5), IdempotencyKey("t", b"")) for one in (reader, writer, reader, reader)]
        assert len({one.result(30) for one in together}) == 1
        assert writer.health().events == 15


@pytest.mark.parametrize("model", ["felrec-s", "item-knn"])
def test_an_erasure_reaches_all_members(place: Place, model: str) -> None:
    with members(place, 3, replace(QUICK, rebuild_after=0.1), model) as (writer, one, other):
        post(writer, made_up(600))
        assert one.erase_user("user 3").result(60).events > 0
        for member in (writer, one, other):
            wait_until(partial(forgot, member, "user 3"))
        post(other, [("user 3", "item 1", 2e9)])
        wait_until(lambda: not writer.health().rebuilding)
        wait_until(lambda: follows(one, writer) and follows(other, writer))
        assert one.user("user 3").events == 1


def test_the_next_writer_goes_on_with_what_it_has(place: Place) -> None:
    """The first one never saved its state: the second must save the rows of blocks that the first one wrote."""
    unsaved = replace(QUICK, save_seconds=math.inf, save_work=math.inf)
    with members(place, 2, unsaved) as (first, second):
        post(first, made_up(700))
        wait_until(lambda: follows(second, first))
        first.close(drain=False)
        wait_until(lambda: role(second) == "writer")
        post(second, made_up(50, start=2e9, seed=1))
        online = state(second)
        second.close()  # saves
    with place.alone("read") as store:
        contents = store.load()
    assert contents.applied == len(contents.blocks) - 1
    assert digest(ServingState(fitted("felrec-s"), contents).recommender) == online == replayed(place)


def test_writes_wait_in_the_inbox_while_no_process_writes(place: Place) -> None:
    post_one = [("ada", "tea", 1e9)]
    with members(place, 1) as (first,):
        post(first, made_up(20))
    with led_by_nobody(place) as stopped:
        reader = open_member(place, replace(QUICK, answer_seconds=5.0))
        assert reader.recommend("user 1").items
        assert role(reader) == "reader"
        with pytest.raises(Unanswered, match="is stored, but the writer has not applied it"):
            post(reader, post_one, IdempotencyKey("k", b""))
        columns = EventColumns.of(["ada"], ["tea"], [1e9])
        assert reader.submit(columns, durable=True).result(30).accepted == 1
        assert not reader.known("user", ["ada"])
        stopped.resign()
        wait_until(lambda: role(reader) == "writer")
        assert post(reader, post_one, IdempotencyKey("k", b"")).accepted == 1
        wait_until(lambda: reader.user("ada").events == 2)  # the other command may come after the retry
        reader.close()


def test_a_member_that_fell_behind_the_change_log_loads_again(place: Place) -> None:
    with members(place, 2) as (writer, reader):
        post(writer, made_up(50))
        wait_until(lambda: follows(reader, writer))
        with reader._state.lock.read():  # what it follows has to wait for its readers
            for number in range(5):
                post(writer, made_up(50, seed=number, start=2e9))
            assert writer._term is not None
            writer._term.engine._ingest.run(lambda: writer._store.trim(0)).result()
        wait_until(lambda: follows(reader, writer))
        assert post(reader, [("ada", "tea", 3e9)]).accepted == 1


def test_a_writer_whose_lease_ended_follows_the_next_one(place: Place) -> None:
    with members(place, 2) as (first, second):
        post(first, made_up(100))
        first._keeper._stop.set()  # it does not renew its lease, as if it had been stopped
        wait_until(lambda: role(second) == "writer")
        both = [submit(one, made_up(20, start=2e9, seed=n)) for n, one in enumerate((first, second))]
        assert [one.result(30).accepted for one in both] == [20, 20]
        wait_until(lambda: role(first) == "reader" and follows(first, second))
        assert second.health().events == 140


def test_a_member_that_cannot_follow_is_not_ready_and_says_how_old_it_is(place: Place) -> None:
    with members(place, 2, replace(QUICK, behind_seconds=0.5)) as (writer, reader):
        wait_until(lambda: reader.health().ready)
        release = threading.Event()
        held = _hold(reader, release)
        post(writer, made_up(10))
        wait_until(lambda: not reader.health().ready)
        wait_until(lambda: reader.health().membership.behind == 1)  # type: ignore[union-attr]
        membership = reader.health().membership
        assert membership is not None
        assert membership.age_ms > 500
        release.set()
        held.join()
        wait_until(lambda: reader.health().ready and follows(reader, writer))


def _hold(reader: Member, release: threading.Event) -> threading.Thread:
    """Keep a member from changing its state."""

    def hold() -> None:
        with reader._state.lock.read():
            release.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    return thread
