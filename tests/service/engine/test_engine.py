"""The engine: what goes in can be asked for at once, and only what may be recommended is."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from felrec.answers.types import BestItems, Rank, Rejected
from felrec.data.pending import Pending
from felrec.data.synthetic import synthetic_log
from felrec.errors import InvalidRequest, KeyConflict, NotFound, Overloaded, Stopped
from felrec.recommender import Queries
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import Attributes, IdempotencyKey
from stores import Given, fitted, made_up, open_engine, post, submit


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store")
    post(engine, made_up(400))
    yield engine
    engine.close()


def ids(answer: BestItems) -> list[str]:
    return [item.id for item in answer.items]


def test_a_receipt_counts(engine: Engine) -> None:
    events: list[Given] = [("a", "x", 5.0), ("b", "x", 4.0), ("a", "y")]
    receipt = submit(engine, events, rejected=[Rejected(3, "no item")]).result()
    assert (receipt.accepted, receipt.late, receipt.events) == (3, 2, 403)
    assert receipt.rejected == (Rejected(3, "no item"),)
    assert submit(engine, [], rejected=receipt.rejected).result().events == 403
    assert [event.id for event in engine.user("a").history] == ["y", "x"]  # sorted by time, newest first
    assert engine.health().clock > 1e9


def test_a_new_item_is_recommendable_after_its_first_event(engine: Engine) -> None:
    assert "brand new" not in ids(engine.recommend("anybody", 1_000))
    post(engine, [("user 1", "brand new")])
    assert "brand new" in ids(engine.recommend("anybody", 1_000))
    assert engine.item("brand new").events == 1


def test_the_answers_are_those_of_the_fitted_model(tmp_path: Path) -> None:
    known = synthetic_log(300, n_users=15, n_items=20, seed=1).log.events
    engine, model = open_engine(tmp_path / "s", fitted(known=known)), fitted(known=known)
    for user in ("3", "a stranger"):
        for exclude in (True, False):
            ours = engine.recommend(user, 7, exclude_seen=exclude).items
            theirs = model.recommend(user, 7, exclude_seen=exclude)
            assert [(item.id, item.score) for item in ours] == [(str(name), score) for name, score in theirs]
    similar = [item.score for item in engine.similar_items("4", 5)]
    assert similar == pytest.approx([score for _, score in model.similar_items(4, 5)], abs=1e-6)
    audience = [user.score for user in engine.audience("4", 5)]
    assert audience == pytest.approx([score for _, score in model.audience(4, 5)], abs=1e-6)
    assert engine.user("3").events == int((known.users == 3).sum())
    assert engine.health().events == 300
    engine.close()


@pytest.fixture
def camps(tmp_path: Path) -> Iterator[Engine]:
    """Cooks and smiths; the cached vectors are random here, so only counts can find what the same users took."""
    engine = open_engine(tmp_path / "camps", fitted("felrec-s"))
    for number in range(6):
        for who in ("cook", "smith"):
            post(engine, [(f"{who} {number}", f"{who}'s {thing}") for thing in ("a", "b", "c")])
    yield engine
    engine.close()


def test_the_audience_of_an_item_are_users_of_what_is_taken_with_it(camps: Engine) -> None:
    post(camps, [("cook 0", "cook's new")])
    audience = camps.audience("cook's new")
    assert {user.id for user in audience} == {f"cook {number}" for number in range(1, 6)}
    assert [user.score for user in audience] == sorted((user.score for user in audience), reverse=True)
    assert audience[0].score == pytest.approx(camps.match("user", [audience[0].id], item="cook's new")[0], abs=1e-5)
    assert len(camps.audience("cook's new", 2)) == 2


def test_neighbours_are_users_of_the_same_items(camps: Engine) -> None:
    assert {user.id for user in camps.neighbours("smith 3")} == {f"smith {n}" for n in range(6)} - {"smith 3"}


def test_similar_items_are_counted_if_the_model_counts(camps: Engine) -> None:
    engine = camps
    assert [item.id for item in engine.similar_items("cook's a")] == ["cook's b", "cook's c"]
    engine.put_item("cook's b", Attributes("Sold out", available=False)).result()
    assert [item.id for item in engine.similar_items("cook's a")] == ["cook's c"]
    assert [item.id for item in engine.similar_items("smith's a", 1)] == ["smith's b"]


def test_seen_items_candidates_and_unknown_ids(engine: Engine) -> None:
    had = {event.id for event in engine.user("user 1", 1_000).history}
    assert had
    assert not had & set(ids(engine.recommend("user 1", 1_000, exclude_seen=True)))
    assert had < set(ids(engine.recommend("user 1", 1_000, exclude_seen=False)))
    answer = engine.recommend("user 1", 10, candidates=["item 2", "nothing", "item 1", "item 2"])
    assert set(ids(answer)) == {"item 1", "item 2"}
    assert answer.ignored == ("nothing",)
    assert answer.known
    assert not engine.recommend("a stranger").known
    assert len(engine.recommend("a stranger").items) == 10
    assert engine.recommend("a stranger", candidates=[]).items == ()


def test_attributes_filter_and_show(engine: Engine) -> None:
    engine.put_item("item 1", Attributes("Bread", ("bakery", "food"))).result()
    engine.put_item("item 2", Attributes("Soap", ("bath",))).result()
    engine.put_item("item 3", Attributes("Rolls", ("bakery",), available=False)).result()
    assert ids(engine.recommend("user 1", tags=["bakery", "none"])) == ["item 1"]
    assert set(ids(engine.recommend("user 1", tags=["bath", "food"]))) == {"item 1", "item 2"}
    assert engine.recommend("user 1", tags=["none"]).items == ()
    assert "item 3" not in ids(engine.recommend("user 1", 1_000))
    assert "item 3" not in [item.id for item in engine.similar_items("item 1", 1_000)]
    assert ids(engine.recommend("user 1", candidates=["item 3", "item 1"], tags=["bakery"])) == ["item 1"]
    assert engine.recommend("user 1", tags=["food"]).items[0].title == "Bread"
    engine.put_item("item 3", Attributes("Rolls", ("bakery",))).result()
    assert set(ids(engine.recommend("user 1", tags=["bakery"]))) == {"item 1", "item 3"}
    assert [found.id for found in engine.search_items("br")] == ["item 1"]
    first, *others = [found.id for found in engine.search_items("item", 4)]
    engine.delete_item(first).result()  # what is gone takes nobody's place
    assert [found.id for found in engine.search_items("item", 3)] == others
    engine.put_item(first, Attributes()).result()


def test_an_item_is_put_before_its_first_event_and_taken_out(engine: Engine) -> None:
    engine.put_item("early", Attributes("Early", ("soon",))).result()
    assert engine.item("early").events == 0
    assert engine.recommend("user 1", tags=["soon"]).items == ()
    post(engine, [("user 1", "early")])
    assert ids(engine.recommend("user 2", tags=["soon"])) == ["early"]
    engine.delete_item("early").result()
    assert "early" not in ids(engine.recommend("user 2", 1_000))
    post(engine, [("user 1", "early")])
    assert "early" not in ids(engine.recommend("user 2", 1_000))
    for call in (engine.item, lambda item: engine.delete_item(item).result()):
        with pytest.raises(NotFound):
            call("early")
    engine.put_item("early", Attributes()).result()
    assert "early" in ids(engine.recommend("user 2", 1_000))


def test_a_session_is_a_history_without_a_name(engine: Engine) -> None:
    """It is scored as a new user with these events pending, and nothing is kept."""
    before = engine.health().events
    session = ["item 3", "item 7", "item 1"]
    answer = engine.recommend_session([*session, "unknown"], 5, exclude_seen=True)
    assert not set(session) & set(ids(answer))
    state = engine._state
    pending = Pending.of([state.items.rows(session).tolist()])
    asked = Queries(np.array([len(state.users)], dtype=np.int32), np.array([2e9]), pending)
    scores = state.recommender.score(asked, state.items.rows(ids(answer)))[0]
    assert [item.score for item in answer.items] == pytest.approx(scores.tolist(), abs=1e-5)
    assert answer.ignored == ("unknown",)
    assert answer.known
    assert engine.health().events == before
    assert not engine.recommend_session([], 5).known


def test_why_names_items_of_the_history(engine: Engine) -> None:
    answer = ids(engine.recommend("user 1", 4))
    reasons = engine.why("user 1", [*answer, "nothing"])
    had = {event.id for event in engine.user("user 1", 1_000).history}
    assert [len(found) for found in reasons] == [1, 1, 1, 1, 0]
    for item, (reason,) in zip(answer, reasons, strict=False):
        assert (reason.kind, reason.share) == ("similar", 1)  # of FELRec-Q there is nothing else to say
        assert {own.id for own in reason.items} <= had - {item}
        assert len(reason.items) == 3
    assert engine.why("a stranger", answer) == [()] * 4


def test_ranks_of_an_item(engine: Engine) -> None:
    items = engine.recommend("user 1", 1_000, exclude_seen=False).items
    ranks = engine.item_ranks(items[12].id, ["user 1", "a stranger"])
    assert ranks.users[0] == Rank("user 1", sum(item.score > items[12].score for item in items))
    assert ranks.catalogue == len(items)
    assert ranks.decayed_popularity is not None
    with pytest.raises(NotFound):
        engine.item_ranks("nothing", ["user 1"])


def test_lists_to_choose_from(engine: Engine) -> None:
    assert [user.id for user in engine.search_users("user 1", 3)] == ["user 1", "user 10", "user 11"]
    assert engine.search_users("nobody") == []
    sample = engine.sample_users(5)
    assert len(sample) == 5
    assert all(user.events >= 5 for user in sample)
    assert engine.sample_users(5) == sample


def test_vectors_and_matches(engine: Engine) -> None:
    vectors = engine.vectors("item", 6)
    assert vectors.values.shape == (6, 8)
    named = engine.vectors("item", ids=["item 1", "nothing"])
    assert named.ids == ("item 1",)
    scores = engine.match("item", [*vectors.ids, "nothing"], item=vectors.ids[0])
    np.testing.assert_allclose(scores[:-1], vectors.values @ vectors.values[0], atol=1e-6)
    assert scores[-1] == min(scores)
    by_score = engine.match("item", ["item 1", "item 2"], user="user 1")
    listed = {item.id: item.score for item in engine.recommend("user 1", 100, exclude_seen=False).items}
    assert by_score == pytest.approx([listed["item 1"], listed["item 2"]], abs=1e-5)
    assert engine.match("user", ["user 1"], item="item 2") == pytest.approx(by_score[1:], abs=1e-5)
    nearest = engine.neighbours("user 1", 1)[0]
    assert engine.match("user", [nearest.id], user="user 1")[0] == pytest.approx(nearest.score, abs=1e-6)


def test_bias_of_recommendations(engine: Engine) -> None:
    assert engine.bias().requests == 0
    for n in range(5):
        engine.recommend(f"user {n}", 3)
    bias = engine.bias()
    assert bias.requests == 5
    assert 0 < bias.coverage <= 15 / engine.health().items
    assert sum(bias.deciles) == pytest.approx(1)
    assert 0.5 < bias.gini < 1


def test_what_does_not_fit_is_refused(engine: Engine) -> None:
    for k in (0, -1, 1_001):
        with pytest.raises(InvalidRequest, match="ask for 1 to 1,000"):
            engine.recommend("user 1", k)
    with pytest.raises(InvalidRequest, match="at most 10,000"):
        submit(engine, [("a", "b")] * 10_001)
    with pytest.raises(InvalidRequest, match="ids"):
        engine.recommend("user 1", candidates=["x"] * 10_001)
    with pytest.raises(InvalidRequest, match="too long"):
        engine.put_item("x", Attributes("t" * 1_001)).result()
    for call in (engine.user, engine.neighbours, engine.similar_items, engine.audience):
        with pytest.raises(NotFound):
            call("nobody")
    with pytest.raises(NotFound):
        engine.erase_user("nobody").result()


def test_models_without_vectors_say_so(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted("popularity"))
    post(engine, made_up(50))
    assert len(engine.recommend("user 1", 5).items) == 5
    assert engine.why("user 1", ["item 1"]) == [()]
    for call in (engine.similar_items, engine.audience):
        with pytest.raises(InvalidRequest, match="no vectors"):
            call("item 1")
    engine.close()


def test_the_same_key_gives_the_same_receipt_also_after_a_restart(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    first = submit(engine, made_up(20), IdempotencyKey("k", b"body"), [Rejected(0, "why")]).result()
    assert submit(engine, made_up(20), IdempotencyKey("k", b"body")).result() == first
    engine.close()
    engine = open_engine(tmp_path / "s")
    assert submit(engine, made_up(20), IdempotencyKey("k", b"body")).result() == first
    assert engine.health().events == 20
    with pytest.raises(KeyConflict, match="new key"):
        submit(engine, made_up(20), IdempotencyKey("k", b"another body")).result()
    assert engine.health().queue_depth == 0
    assert submit(engine, made_up(20), IdempotencyKey("k2", b"body")).result().events == 40
    engine.close()


def test_keys_are_forgotten_after_a_while(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", limits=Limits(answer_hours=0.0))
    for total in (20, 40):
        assert submit(engine, made_up(20), IdempotencyKey("k", b"body")).result().events == total
    engine.close()


def test_a_closed_engine_takes_nothing(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    waiting = [submit(engine, made_up(50, seed=n)) for n in range(5)]
    engine.close(drain=True)
    assert sum(one.result().accepted for one in waiting) == 250
    with pytest.raises(Stopped):
        submit(engine, made_up(1))
    again = open_engine(tmp_path / "s")
    assert again.health().events == 250
    again.close()


def test_memory_holds_no_key_that_is_answered(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    for n in range(5):
        submit(engine, made_up(3, seed=n), IdempotencyKey(f"k{n}", b"body")).result()
    post(engine, made_up(1))  # the one before has been put away when this is answered
    assert not engine._ingest._answers._waiting
    engine.close()


def test_small_posts_do_not_make_a_large_one_look_long(tmp_path: Path) -> None:
    """A post of one event takes about as long as a full block, so events a second would say nothing."""
    engine = open_engine(tmp_path / "s", limits=Limits(queue_seconds=3.0))
    for n in range(100):
        post(engine, made_up(1, seed=n))
    large = submit(engine, made_up(2_000))
    assert submit(engine, made_up(1)).result().accepted == 1
    assert large.done()
    engine.close()


def test_a_full_queue_says_when_to_come_again(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", limits=Limits(queue=1_000))
    other = apsw.Connection(str(tmp_path / "s"))
    other.execute("BEGIN IMMEDIATE")  # nothing gets on until this is over
    taken = [submit(engine, made_up(200, seed=n)) for n in range(5)]
    with pytest.raises(Overloaded) as refused:
        submit(engine, made_up(1))
    assert 1 <= refused.value.retry_after <= 30
    other.close()
    assert sum(one.result().accepted for one in taken) == engine.health().events == 1_000
    post(engine, made_up(5))  # and then there is room again
    assert engine.health().queue_depth == 0
    engine.close()


def test_an_infinite_time_is_refused(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted())
    with pytest.raises(InvalidRequest, match="infinite"):
        submit(engine, [("ada", "tea", float("inf"))])
    assert engine.health().clock < 1e12
    engine.close()


def test_a_change_that_waits_cannot_be_cancelled(engine: Engine) -> None:
    """A client that disconnects cancels what it waits for, and must not cancel its write."""
    post(engine, [("user 1", "item 1")])
    released = threading.Event()
    engine._ingest.run(lambda: released.wait(60))
    put, deleted, erased = engine.put_item("x", Attributes("X")), engine.delete_item("x"), engine.erase_user("user 1")
    assert [put.cancel(), deleted.cancel(), erased.cancel()] == [False] * 3
    released.set()
    assert put.result().title == "X"
    deleted.result()
    assert erased.result().events > 0


def test_waiting_changes_are_bounded(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", limits=Limits(tasks=2))
    released, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        released.wait(60)

    engine._ingest.run(work)
    assert begun.wait(60)
    waiting = [engine.put_item(str(n), Attributes()) for n in range(2)]
    for change in (lambda: engine.put_item("x", Attributes()), lambda: engine.erase_user("x")):
        with pytest.raises(Overloaded, match="2 changes of items and users are queued") as refused:
            change()
        assert refused.value.retry_after >= 1
    released.set()
    assert [change.result().id for change in waiting] == ["0", "1"]
    assert engine.put_item("x", Attributes()).result().id == "x"
    engine.close()


def test_a_service_that_reads_no_file_does_not_load_polars(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import felrec.service.http.server
from felrec.data.events import EventColumns
from felrec.pretrained import load_pretrained
from felrec.service.engine.engine import Engine
from felrec.store.sqlite import SqliteStore
engine = Engine.open(SqliteStore(Path({str(tmp_path / "store.sqlite")!r})), load_pretrained())
engine.submit(EventColumns.of(["ada"], ["tea"], [7.0])).result()
engine.close()
sys.exit("polars" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
