"""A store that several processes have open: one writes, all append and follow, and nobody is deceived."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest

from felrec.data.tables.trimmed_values import trimmed
from felrec.errors import ChangesTrimmed, NotesChanged, NotLeader, StoreBusy, StoreError
from felrec.store.protocol import Answered, Batch, Removal
from felrec.store.sql_store import SqlStore
from places import Place
from small_stores import EMPTY_BASE, IDENTITY, one_block, one_row


def leading(place: Place, name: str = "first") -> SqlStore:
    """A store that was filled and has the lease."""
    store = place()
    assert store.lead(name, 60)
    store.begin(IDENTITY, EMPTY_BASE)
    return store


def test_one_leads_and_the_others_can_write_nothing(place: Place) -> None:
    writer, reader = leading(place), place()
    assert not reader.lead("second", 60)
    assert writer.lead("first", 60)
    for write in (
        lambda: reader.begin(IDENTITY, EMPTY_BASE),
        lambda: reader.commit(one_block()),
        lambda: reader.save(trimmed(one_row(0)), applied=0),
        reader.tidy,
        lambda: reader.erase(Removal()),
        lambda: reader.trim(0),
    ):
        with pytest.raises(NotLeader):
            write()
    writer.commit(one_block())
    assert len(reader.load().events) == 1
    assert reader.standing().leader == "first"


def test_who_lost_the_lease_writes_nothing_whatever_it_believes(place: Place) -> None:
    old, new = leading(place), place()
    assert old.lead("first", 0)  # it ends at once
    assert new.lead("second", 60)
    with pytest.raises(NotLeader):
        old.commit(one_block())
    with pytest.raises(NotLeader):
        old.save(trimmed(one_row(0)), applied=0)
    assert not old.lead("first", 60)
    new.commit(one_block())
    assert len(old.load().events) == 1


def test_a_lease_that_ended_can_be_renewed_as_long_as_nobody_else_took_it(place: Place) -> None:
    store = leading(place)
    store.lead("first", 0)
    store.commit(one_block())
    assert store.standing().leader == ""
    assert store.lead("first", 60)
    assert store.standing().leader == "first"


@pytest.mark.parametrize("how", ["resigned", "closed", "ended"])
def test_the_next_writer_goes_on_where_the_last_one_was(place: Place, how: str) -> None:
    old, new = leading(place), place()
    old.commit(replace(one_block(), change=b"one"))
    old.save(trimmed(one_row(0)), applied=1)
    old.save(trimmed(one_row(0, value=9.0)))  # a save that is never completed
    if how == "resigned":
        old.resign()
    elif how == "closed":
        old.close()
    else:
        old.lead("first", 0)
    assert new.lead("second", 60)
    new.commit(replace(one_block(1), change=b"two"))
    new.save(trimmed(one_row(1)), applied=2)
    kept = new.load()
    assert kept.users == ["user 0", "user 1"]
    assert kept.state["vectors"][:, 0].tolist() == [0.5, 1.5]
    assert (kept.applied, kept.change) == (2, 2)
    assert new.verify() == []


def test_who_resigned_may_lead_again(place: Place) -> None:
    first, second = leading(place), place()
    for n, store in enumerate((first, second, first)):
        assert store.lead("any", 60)
        store.commit(one_block(n))
        store.resign()
        with pytest.raises(NotLeader):
            store.commit(one_block(n + 1))
    assert len(second.load().events) == 3


def test_a_command_is_answered_with_its_effect(place: Place) -> None:
    writer, reader = leading(place), place()
    numbers = [reader.append("events", b"\0body"), writer.append("put", b"", {"stream": "17"})]
    assert reader.notes() == {"stream": "17"}
    assert [(command.number, command.kind, command.body) for command in writer.commands(10)] == [
        (numbers[0], "events", b"\0body"),
        (numbers[1], "put", b""),
    ]
    assert [command.number for command in writer.commands(1, skip=numbers[:1])] == numbers[1:]
    writer.commit(replace(one_block(), answered=[Answered(numbers[0], "{}")], change=b"x"))
    assert [command.number for command in writer.commands(10)] == numbers[1:]
    writer.erase(Removal(answered=[Answered(numbers[1], "{}")]))
    assert writer.commands(10) == []
    assert reader.append("events", b"") not in numbers  # a number is never used twice


def test_a_command_stays_if_its_effect_was_not_committed(place: Place) -> None:
    old, new = leading(place), place()
    number = new.append("events", b"body")
    old.lead("first", 0)
    assert new.lead("second", 60)
    with pytest.raises(NotLeader):
        old.commit(replace(one_block(), answered=[Answered(number, "{}")], change=b"x"))
    assert [command.number for command in new.commands(10)] == [number]
    assert new.changes(0, 0) == []


def test_all_threads_append_while_the_writer_commits(place: Place) -> None:
    writer, others = leading(place), [place(), place()]
    with ThreadPoolExecutor(8) as pool:
        numbers = pool.map(lambda n: others[n % 2].append("n", str(n).encode(), {"n": str(n)}), range(100))
        for n in range(20):
            writer.commit(one_block(n))
        assert len(set(numbers)) == 100
    bodies = {command.body for command in writer.commands(1_000)}
    assert bodies == {str(n).encode() for n in range(100)}


def test_of_two_that_replace_the_same_notes_one_wins(place: Place) -> None:
    writer, other = leading(place), place()
    assert writer.standing().inbox == 0
    writer.append("n", b"1", {"a": "1", "b": "1"}, {"a": None, "b": None})
    other.append("n", b"2", {"a": "2", "free": "2"}, {"a": "1"})
    for expected in ({"a": None}, {"a": "1"}, {"a": "2", "b": "wrong"}, {"c": "never there"}):
        with pytest.raises(NotesChanged):
            writer.append("n", b"3", dict.fromkeys(("a", "b", "c"), "3"), expected)
    assert writer.notes() == {"a": "2", "b": "1", "free": "2"}
    assert [command.body for command in writer.commands(10)] == [b"1", b"2"]
    assert other.standing().inbox == 2


def test_a_note_that_many_count_up_loses_nothing(place: Place) -> None:
    stores = [leading(place), place()]

    def count(n: int) -> int:
        for attempt in range(10_000):
            value = stores[n % 2].notes().get("n")
            with suppress(NotesChanged):
                return stores[n % 2].append("n", b"", {"n": str(int(value or 0) + 1)}, {"n": value}) and attempt
        raise AssertionError

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(60)))
    assert stores[0].notes() == {"n": "60"}
    assert len(stores[0].commands(1_000)) == 60


def test_every_reader_sees_every_change_in_order(place: Place) -> None:
    writer, readers = leading(place), [place(), place()]

    def follow(reader: SqlStore) -> list[bytes]:
        seen: list[bytes] = []
        while len(seen) < 30:
            found = reader.changes(len(seen), seconds=60, most=7)
            assert [change.number for change in found] == list(range(len(seen) + 1, len(seen) + 1 + len(found)))
            seen += [change.body for change in found]
        return seen

    with ThreadPoolExecutor(2) as pool:
        followed = [pool.submit(follow, reader) for reader in readers]
        for n in range(30):
            writer.commit(replace(one_block(n), change=b"%d" % n if n != 7 else None))
        writer.save(trimmed(one_row(0)), applied=30, change=b"saved")
    expected = [b"%d" % n for n in range(30) if n != 7] + [b"saved"]
    assert [done.result() for done in followed] == [expected, expected]
    assert writer.standing()[:3] == (30, 1, 30)


def test_a_wait_for_changes_ends_with_its_time_or_with_the_store(place: Place) -> None:
    reader = place()
    assert reader.changes(0, seconds=0.01) == []

    def wait() -> None:
        with suppress(StoreError):  # it is closed
            reader.changes(0, seconds=600)

    waiting = threading.Thread(target=wait)
    waiting.start()
    reader.close()
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_reader_that_is_too_far_behind_is_told(place: Place) -> None:
    writer, reader = leading(place), place()
    for n in range(10):
        writer.commit(replace(one_block(n), change=b"%d" % n))
    writer.trim(keep=4)
    assert writer.standing()[:2] == (10, 7)
    assert [change.number for change in reader.changes(6, 0)] == [7, 8, 9, 10]
    with pytest.raises(ChangesTrimmed):
        reader.changes(5, 60)
    writer.trim(keep=0)
    assert writer.standing()[:2] == (10, 11)
    assert reader.changes(10, 0) == []
    for lost in (9, 11):  # one entry behind, and ahead of a store that was restored
        with pytest.raises(ChangesTrimmed):
            reader.changes(lost, 60)
    assert reader.load().change == 10
    assert writer.verify() == []


def test_a_single_engine_and_a_group_exclude_each_other(place: Place) -> None:
    with place() as one, place():
        with pytest.raises(StoreBusy, match="in use"):
            place.alone()
        one.lead("one", 60)
        one.begin(IDENTITY, EMPTY_BASE)
        one.commit(replace(one_block(), change=b"x"))
    with place.alone() as alone:
        with pytest.raises(StoreBusy, match="in use"):
            place()
        with pytest.raises(StoreBusy, match="in use"):
            place.alone()
        alone.commit(one_block(1))
    with place() as again:
        with pytest.raises(ChangesTrimmed):  # the single engine told nobody what it did
            again.changes(1, 0)
        assert again.lead("again", 60)
        again.commit(replace(one_block(2), change=b"y"))
        assert [change.body for change in again.changes(again.load().change - 1, 0)] == [b"y"]


def test_a_store_that_nobody_shares_has_no_change_log(place: Place) -> None:
    store = place.alone()
    store.begin(IDENTITY, EMPTY_BASE)
    store.commit(one_block())
    assert store.standing() == (0, 1, 0, "", 1, 0)


def test_a_damaged_log_is_found(place: Place) -> None:
    with place() as store:
        store.lead("one", 60)
        store.begin(IDENTITY, EMPTY_BASE)
        store.append("events", b"body")
        for n in range(3):
            store.commit(Batch(change=b"%d" % n))
        with store._database.appending() as connection:
            connection.execute("UPDATE inbox SET body = ?", (b"x",))
            connection.execute("UPDATE changes SET body = ? WHERE number = 2", (b"x",))
            connection.execute("DELETE FROM changes WHERE number = 3")
    findings = " ".join(place("read").verify())
    assert "inbox: command 1 is damaged" in findings
    assert "changes: entry 2 is missing or damaged" in findings
    assert "newest entry should be 3, but is 2" in findings


def test_the_writer_waits_for_commands(place: Place) -> None:
    writer, other = leading(place), place()
    first = other.append("n", b"1")
    assert writer.commands(10, skip=[first], seconds=0.01) == []
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(writer.commands, 10, skip=[first], seconds=60)
        second = other.append("n", b"2")
        assert [command.number for command in waiting.result(60)] == [second]


def test_the_threads_of_a_writer_do_not_disturb_one_another(place: Place) -> None:
    writer = leading(place)

    def beside(n: int) -> None:
        assert writer.lead("first", 60)
        writer.trim(keep=5)
        writer.append("n", b"")
        assert len(writer.load().users) >= n

    with ThreadPoolExecutor(2) as pool:
        for n in range(20):
            writer.commit(replace(one_block(n), change=b"%d" % n))
            done = pool.submit(beside, n)
            writer.save(trimmed(one_row(n)), applied=n + 1)
        done.result()
    assert len(writer.commands(100)) == 20
    assert writer.load().change == 20
    assert writer.verify() == []
