"""The object that is evaluated is the object that serves: an engine answers as an evaluation in blocks of one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import felrec
from felrec.service.engine.engine import Engine
from felrec.service.engine.serving_state import ServingState
from felrec.store.sqlite import SqliteStore
from stores import post

LOG = felrec.synthetic_log(1_500, n_users=200, n_items=300, seed=4).log


def rank(engine: Engine, user: str, item: str) -> float:
    """Of an item in the whole ranking for a user; ties count half, NaN for an item that is not in it."""
    answer = {found.id: found.score for found in engine.recommend(user, k=1_000, exclude_seen=False).items}
    if item not in answer:
        return float("nan")
    scores = np.array(list(answer.values()))
    return float((scores > answer[item]).sum() + ((scores == answer[item]).sum() - 1) / 2)


def test_an_engine_fed_event_by_event_ranks_as_an_evaluation_in_blocks_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = felrec.split_log(LOG)
    model = felrec.fit(split, "felrec-s", epochs=1, width=8, heads=2, feed_forward=16, history_length=8)
    expected = felrec.evaluate(model, split, exclude_seen="no", block=1).results
    users, items = LOG.user_ids.ids(split.test.users), LOG.item_ids.ids(split.test.items)
    now = SimpleNamespace(time=lambda: 0.0)  # a question is asked at the time of its event
    monkeypatch.setattr(ServingState, "question_time", property(lambda _: now.time()))
    ranks = []
    with closing(Engine.open(SqliteStore(tmp_path / "store"), model)) as engine:
        for user, item, time in zip(users, items, split.test.times.tolist(), strict=True):
            now.time = lambda time=time: time
            ranks.append(rank(engine, str(user), str(item)))
            post(engine, [(str(user), str(item), time)])
    assert expected.first.any()  # some items, and below some users, appear in the test part first
    assert (split.partition(*split.bounds("test")) == 1).any()
    np.testing.assert_array_equal(ranks, expected.rank)
