"""Questions that wait at the same time are answered together, and each gets its own answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from felrec.answers.types import BestItems
from felrec.data.events import Rows
from felrec.errors import Stopped
from felrec.recommender import Queries
from felrec.service.engine import ranking, similarity
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Question
from stores import made_up, open_engine, post, submit

USERS = [f"user {n}" for n in range(20)]
NONSENSE = Question("user 1", candidates=[["no name"]])  # type: ignore[list-item]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store")
    post(engine, made_up(400))
    yield engine
    engine.close()


def asked_together(engine: Engine, questions: list[Question]) -> list[Future[BestItems]]:
    """Ask while nobody may read, so that all questions wait."""
    with engine._state.lock.write():
        return [engine.ask(question) for question in questions]


def same(one: BestItems, other: BestItems) -> bool:
    """As a product of many vectors may round otherwise than one of a single vector, scores are only near."""
    near = [item.score for item in one.items] == pytest.approx([item.score for item in other.items], abs=1e-5)
    return near and (one.known, one.ignored) == (other.known, other.ignored)


def counting_passes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queries each pass through the model has, from now on."""
    passes, model = list[int](), engine._state.recommender
    score = model.score

    def counted(queries: Queries, candidates: Rows) -> Any:
        passes.append(len(queries))
        return score(queries, candidates)

    monkeypatch.setattr(model, "score", counted)
    return passes


def test_each_gets_its_own_answer_and_few_passes_are_made(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [Question(user, (), k) for k, user in enumerate([*USERS, "a stranger"], 1)]
    questions += [Question(user, (), 8, exclude_seen=True) for user in USERS]
    questions += [Question(None, ["item 1", "unheard of"], 5), Question("user 2", candidates=["item 1", "item 2"])]
    alone = [engine.ask(question).result() for question in questions]
    passes = counting_passes(engine, monkeypatch)
    together = [future.result() for future in asked_together(engine, questions)]
    assert all(map(same, together, alone))
    assert sum(passes) == len(questions)
    assert len(passes) < len(questions) / 2


def test_an_answer_is_for_the_user_who_asked(engine: Engine) -> None:
    together = [future.result() for future in asked_together(engine, [Question(user, (), 1_000) for user in USERS])]
    alone = [engine.recommend(user, 1_000) for user in USERS]
    assert len({answer.items[0].score for answer in alone}) > 10  # most users have an answer of their own
    assert all(map(same, together, alone))


def test_what_one_runs_into_is_not_the_trouble_of_the_others(engine: Engine) -> None:
    good = [Question(user) for user in USERS]
    futures = asked_together(engine, [*good[:10], NONSENSE, *good[10:]])
    with pytest.raises(TypeError):
        futures.pop(10).result()
    assert all(same(future.result(), engine.recommend(user)) for user, future in zip(USERS, futures, strict=True))


def test_a_cancelled_question_costs_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = counting_passes(engine, monkeypatch)
    with engine._state.lock.write():
        futures = [engine.ask(Question(user)) for user in [*USERS, *USERS]]
        cancelled = [future for future in futures if future.cancel()]
    assert cancelled  # those that no thread had begun with
    assert all(future.cancelled() or future.result().items for future in futures)
    assert sum(passes) == len(futures) - len(cancelled)
    assert engine.recommend("user 1").items


def test_closing_answers_what_waits_and_refuses_the_rest(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "store")
    post(engine, made_up(100))
    futures = [engine.ask(Question(user)) for user in USERS]
    engine.close()
    assert all(future.result(timeout=0).items for future in futures)
    with pytest.raises(Stopped):
        engine.ask(Question("user 1"))


def test_a_post_on_its_way_cannot_be_taken_back(engine: Engine) -> None:
    with engine._state.lock.write():
        future = submit(engine, made_up(1, start=2e9))
        assert not future.cancel()
    assert future.result().events == 401


@pytest.mark.parametrize("ask", ["audience", "similar_items", "neighbours", "item_ranks"])
def test_a_long_read_lets_the_writer_in(engine: Engine, monkeypatch: pytest.MonkeyPatch, ask: str) -> None:
    """A write that arrives during the first part of a read is done before the last part."""
    module, part, asked = {
        "audience": (similarity, "vectors_of", ("item 9", 3)),
        "similar_items": (similarity, "vectors_of", ("item 9", 3)),
        "neighbours": (similarity, "vectors_of", ("user 1", 3)),
        "item_ranks": (ranking, "scores_of", ("item 9", [*USERS, *USERS])),
    }[ask]
    monkeypatch.setattr(similarity, "_PIECE", 4)
    lock, order, read = engine._state.lock, list[str](), getattr(module, part)

    def write() -> None:
        with lock.write():
            order.append("written")

    writer = threading.Thread(target=write)

    def noted(*arguments: Any) -> Any:
        order.append("read")
        if len(order) == 1:  # the lock is held, and a writer comes
            writer.start()
            while not lock._waiting:
                pass
        return read(*arguments)

    monkeypatch.setattr(module, part, noted)
    assert getattr(engine, ask)(*asked)
    writer.join()
    assert order.index("written") < len(order) - 1


def test_ranks_are_the_same_for_many_users_and_for_one(engine: Engine) -> None:
    ranks = engine.item_ranks("item 1", [*USERS, *USERS, "a stranger"])
    assert [rank.user for rank in ranks.users] == [*USERS, *USERS, "a stranger"]
    assert [rank.rank for rank in ranks.users[:20]] == [rank.rank for rank in ranks.users[20:40]]
    assert ranks.users[3].rank == engine.item_ranks("item 1", ["user 3"]).users[0].rank
