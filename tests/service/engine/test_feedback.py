"""Impressions and clicks: counted once, kept over restarts, compared with intervals."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from felrec.errors import InvalidRequest, StoreFull
from felrec.service.engine import feedback as module
from felrec.service.engine.click_counts import FEEDBACK, Counted, Counts, Note
from felrec.service.engine.feedback import Feedback, FeedbackSaver, Kind
from felrec.service.engine.proportions import difference, share_of
from felrec.service.engine.tickets import Arm, Tickets, arm_of
from felrec.service.engine.types import Question
from stores import contents_of, open_engine, post


class Clock:
    now = 1e9

    def __call__(self) -> float:
        return self.now


def counting(note: str = "") -> tuple[Feedback, Clock]:
    clock = Clock()
    return Feedback(note or Note.new().text(), clock), clock


def ticket_of(feedback: Feedback, arm: Arm, first: int, places: int) -> str:
    ticket = feedback.ticket(arm, first, places)
    assert ticket is not None
    return ticket


def saved(feedback: Feedback) -> str:
    """The note, once everything is in it."""
    notes = dict[str, str]()
    FeedbackSaver(feedback, notes.update).save()
    return notes[FEEDBACK]


def places(feedback: Feedback, arm: Arm) -> dict[int, tuple[int, int]]:
    shown, clicked = feedback.counts()[arm]
    return {place: (shown[place], clicked[place]) for place in sorted(shown)}


def test_places_are_counted_once() -> None:
    feedback, _ = counting()
    ticket = ticket_of(feedback, "outside", first=10, places=3)
    reports: list[tuple[Kind, int | None, bool]] = [
        ("click", 1, True),  # counts as an impression too
        ("impression", 1, False),
        ("impression", None, True),  # the other two places
        ("impression", None, False),
        ("click", 1, False),
        ("click", 2, True),
    ]
    for kind, place, new in reports:
        assert feedback.report(ticket, kind, place) is new
    assert places(feedback, "outside") == {10: (1, 0), 11: (1, 1), 12: (1, 1)}
    (arm,) = feedback.stats().arms
    assert (arm.lists.clicked, arm.lists.of, arm.impressions.clicked, arm.impressions.of) == (1, 1, 2, 3)
    assert [(one.place, one.clicked, one.of) for one in arm.places] == [(10, 0, 1), (11, 1, 1), (12, 1, 1)]


def test_reports_without_a_good_ticket_or_place_are_refused() -> None:
    feedback, clock = counting()
    ticket = ticket_of(feedback, "outside", 0, 3)
    changed = ("A" if ticket[0] != "A" else "B") + ticket[1:]
    other = Tickets(b"another store").sign("outside", 0, 3, clock.now)
    for bad in (changed, other, "", "x", "é", "a" * 99, ticket + "AAAA"):
        with pytest.raises(InvalidRequest, match="unknown ticket"):
            feedback.report(bad, "click", 0)
    for place in (-1, 3):
        with pytest.raises(InvalidRequest, match="has 3 places"):
            feedback.report(ticket, "click", place)
    with pytest.raises(InvalidRequest, match="which place was clicked"):
        feedback.report(ticket, "click", None)
    clock.now += 86_401
    with pytest.raises(InvalidRequest, match="older than 24 hours"):
        feedback.report(ticket, "click", 0)
    assert feedback.stats().arms == ()


def test_every_bit_of_a_ticket_is_signed() -> None:
    tickets = Tickets(b"key")
    ticket = tickets.sign("model", 3, 5, now=7.0)
    for at in range(len(ticket) - 1):  # the last character has bits that are not used
        letter = "A" if ticket[at] != "A" else "B"
        with pytest.raises(InvalidRequest):
            tickets.read(ticket[:at] + letter + ticket[at + 1 :], now=7.0)


def test_counts_and_tickets_survive_a_restart(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "store")
    engine.feedback.test(0.5)
    tickets: dict[Arm, str] = {arm: ticket_of(engine.feedback, arm, 0, 2) for arm in ("model", "trending")}
    engine.feedback.report(tickets["model"], "click", 1)
    since = engine.feedback.stats().since
    engine.close()
    engine = open_engine(tmp_path / "store")
    engine.feedback.test(0.5)
    engine.feedback.report(tickets["trending"], "impression", None)
    assert places(engine.feedback, "model") == {1: (1, 1)}
    assert places(engine.feedback, "trending") == {0: (1, 0), 1: (1, 0)}
    assert engine.feedback.stats().since == since
    engine.close()


def test_counts_are_written_soon_without_a_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HAND_IN", 0.01)
    engine = open_engine(tmp_path / "store")
    engine.feedback.report(ticket_of(engine.feedback, "outside", 0, 2), "click", 1)
    until = time.monotonic() + 30
    while not _kept_clicks(tmp_path / "store"):
        assert time.monotonic() < until
        time.sleep(0.01)
    engine.close()


def _kept_clicks(store: Path) -> dict[str, int]:
    note = contents_of(store).notes.get(FEEDBACK)
    clicked: dict[str, int] = json.loads(note)["arms"]["outside"]["clicked"] if note else {}
    return clicked


def test_a_store_has_one_key_from_its_beginning_and_no_more_without_a_report(tmp_path: Path) -> None:
    open_engine(tmp_path / "store").close()
    begun = contents_of(tmp_path / "store").notes[FEEDBACK]
    engine = open_engine(tmp_path / "store")
    post(engine, [("ada", "tea")])
    ticket_of(engine.feedback, "outside", 0, 2)
    engine.close()
    assert contents_of(tmp_path / "store").notes[FEEDBACK] == begun


def test_a_store_of_an_earlier_version_gets_a_key() -> None:
    feedback = Feedback("", Clock())
    assert feedback.ticket("outside", 0, 1) is None
    with pytest.raises(InvalidRequest, match="unknown ticket"):
        feedback.report("anything", "click", 0)
    note = saved(feedback)
    again, _ = counting(note)
    assert again.report(ticket_of(feedback, "outside", 0, 1), "click", 0)


def test_a_failed_write_is_tried_again() -> None:
    failing = [True]

    def write(notes: object) -> None:
        if failing:
            failing.clear()
            raise StoreFull("no space")

    feedback, _ = counting()
    saver = FeedbackSaver(feedback, write)
    feedback.report(ticket_of(feedback, "outside", 0, 1), "click", 0)
    with pytest.raises(StoreFull):
        saver.step()
    assert saver.due > time.monotonic()  # not at once
    assert feedback.take()
    saver.step()
    assert not feedback.take()
    assert places(feedback, "outside") == {0: (1, 1)}


def test_what_another_process_counted_is_added_once() -> None:
    writer, _ = counting()
    reader, _ = counting(writer.note.text())
    notes = dict[str, str]()
    saver = FeedbackSaver(writer, notes.update)
    ticket = ticket_of(writer, "outside", 0, 1)
    assert reader.report(ticket, "click", 0)
    first = reader.take()
    assert first is not None
    reader.report(ticket_of(reader, "outside", 1, 1), "click", 0)
    assert reader.take() == first  # one after the other
    for _ in range(3):
        saver.add(first)  # as if it had been sent again
        assert places(writer, "outside") == {0: (1, 1)}
        assert places(reader, "outside") == {0: (1, 1), 1: (1, 1)}
    reader.follow(Note.read(notes[FEEDBACK]))
    assert places(reader, "outside") == {0: (1, 1), 1: (1, 1)}
    second = reader.take()
    assert second is not None
    saver.add(second)
    assert places(writer, "outside") == {0: (1, 1), 1: (1, 1)}


def test_the_note_has_a_bounded_number_of_processes() -> None:
    note = Note.new()
    for number in range(300):
        note = note.plus(Counted(f"process {number}", 1, Counts().kept()))
        note = note.plus(Counted("the one that stays", number + 1, Counts().kept()))
    assert len(note.numbers) == 100
    assert note.numbers["the one that stays"] == 300


def test_processes_that_begin_the_same_test_share_it_and_of_two_tests_the_newer_counts() -> None:
    total, old, same, new = (Counts() for _ in range(4))
    tests = (total, 0.1, 5.0), (old, 0.2, 4.0), (same, 0.1, 6.0), (new, 0.3, 7.0)
    for counts, share, since in tests:
        counts.begin(share, since)
        for arm in counts.arms.values():
            arm.lists = 1
    total.add(old)
    total.add(same)
    assert (total.share, total.since) == (0.1, 5.0)
    assert {arm: one.lists for arm, one in total.arms.items()} == {"outside": 3, "model": 2, "trending": 2}
    total.add(new)
    assert (total.share, total.since) == (0.3, 7.0)
    assert {arm: one.lists for arm, one in total.arms.items()} == {"outside": 4, "model": 1, "trending": 1}


def test_another_share_begins_a_new_test() -> None:
    feedback, _ = counting()
    feedback.test(0.1)
    for arm in ("model", "trending", "outside"):
        feedback.report(ticket_of(feedback, arm, 0, 1), "click", 0)
    again, clock = counting(saved(feedback))
    again.test(0.0)  # paused: the counts stay
    again.test(0.1)
    assert len(again.stats().arms) == 3
    clock.now += 1
    again.test(0.2)
    assert [one.arm for one in again.stats().arms] == ["outside"]
    with pytest.raises(InvalidRequest):
        again.test(1.0)


def test_only_recent_lists_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 10)
    feedback, _ = counting()
    for _ in range(100):
        feedback.report(ticket_of(feedback, "outside", 0, 1), "impression", None)
    assert len(feedback._recent) == 10


def test_arms_are_stable_and_as_large_as_asked() -> None:
    users = [f"user-{n}" for n in range(20_000)]
    few, more = ({user for user in users if arm_of(user, share) == "trending"} for share in (0.05, 0.2))
    assert len(few) / 20_000 == pytest.approx(0.05, abs=0.006)
    assert len(more) / 20_000 == pytest.approx(0.2, abs=0.01)
    assert few < more  # a larger share moves nobody back


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    lots, held, both = random.Random(1), 0, 0
    for _ in range(1_000):
        first, second = (share_of(sum(lots.random() < p for _ in range(n)), n) for p, n in ((0.05, 200), (0.03, 100)))
        assert first is not None
        assert second is not None
        held += first.low <= 0.05 <= first.high
        between = difference(first, second)
        both += between.low <= 0.02 <= between.high
    assert 920 <= held <= 985
    assert 920 <= both <= 985


def test_the_difference_of_the_arms_is_found() -> None:
    feedback, _ = counting()
    feedback.test(0.5)
    clicks: list[tuple[Arm, int]] = [("model", 30), ("trending", 10)]
    for arm, clicked in clicks:
        for number in range(100):
            ticket = ticket_of(feedback, arm, 0, 5)
            feedback.report(ticket, "impression", None)
            if number < clicked:
                feedback.report(ticket, "click", 0)
    found = feedback.stats().difference
    assert found is not None
    assert found.value == pytest.approx(0.2)
    assert 0.05 < found.low < 0.2 < found.high < 0.35


def test_trending_lists_follow_the_rules_of_a_question(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "store")
    post(engine, [("ada", "tea"), ("bob", "tea"), ("bob", "jam"), ("eve", "tea"), ("eve", "milk"), ("joe", "milk")])
    found = engine.trending(Question("bob", k=2))
    assert [item.id for item in found.items] == ["tea", "milk"]
    assert (found.known, found.user) == (True, "bob")
    unseen = engine.trending(Question("bob", k=5, exclude_seen=True, exclude=["x"], candidates=["milk", "jam", "y"]))
    assert ([item.id for item in unseen.items], unseen.ignored) == (["milk"], ("y",))
    assert [item.id for item in engine.trending(Question("new", k=2, offset=1)).items] == ["milk", "jam"]
    engine.close()
