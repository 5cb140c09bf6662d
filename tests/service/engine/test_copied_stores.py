"""A store that is copied to another place, of the same kind or not, is the same store there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from felrec.data.events import EventColumns
from felrec.errors import StoreError
from felrec.fitted import FittedModel
from felrec.service.engine.cluster.commands import Post, to_inbox
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.copying import copy_store
from felrec.service.maintenance.replaying import replay_store
from felrec.service.maintenance.rewriting import store_at
from felrec.store.postgres_schema import unfinished_namespace
from felrec.store.protocol import Contents, Unfinished
from places import Place
from stores import BASE, NO_REBUILD, fitted, made_up, post, save, state_of

KEY = IdempotencyKey("a post", b"its body")
LATER = EventColumns.of(["ann"], ["item 1"], [2e9])
_numbers = count()


@pytest.fixture(params=["file to server", "server to file", "server to server"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    """Where a store is, and where it goes."""
    made = []
    for kind, name in zip(request.param.split(" to "), ("old", "new"), strict=True):
        if kind == "file":
            made.append(Place(str(tmp_path / name), None))
        else:
            made.append(Place(request.getfixturevalue("postgres").address(), f"{name}-{next(_numbers)}"))
    yield made[0], made[1]
    for place in made:
        place.close()


def model_of(name: str, base: bool) -> FittedModel:
    return fitted(name, BASE) if base else fitted(name)


def opened(place: Place, model: FittedModel) -> Engine:
    return Engine.open(place.alone(), model, limits=NO_REBUILD, empty=not len(model.pairs))


def contents_at(place: Place) -> Contents:
    with place.alone("read") as store:
        assert store.verify() == []
        return store.load()


def fill(place: Place, model: FittedModel) -> None:
    """A store with all that one can have: an erased user, items, a receipt, blocks that its state lacks, an inbox."""
    engine = opened(place, model)
    post(engine, [*made_up(300), ("ann", "item 1", 1e9 + 300)], KEY)
    engine.put_items({"item 1": Attributes("Öl", ("a", "b")), "new": Attributes("'\"")}).result()
    engine.delete_item("item 2").result()
    engine.erase_user("user 3").result()
    save(engine)
    engine._committer.saver.save_all = lambda: None  # type: ignore[method-assign]  # as if it were killed
    post(engine, made_up(20, start=1.1e9, seed=1))
    engine.close()
    with place() as store:
        store.append(*to_inbox(Post(LATER)))


def move(old: Place, new: Place) -> None:
    with store_at(new.address, new.namespace) as target:
        copy_store(contents_at(old), target)


def same(old: Contents, new: Contents) -> None:
    """Equal but for the clock by which receipts expire, and for the numbers of commands."""
    for field in ("identity", "users", "items", "attributes", "notes", "applied", "clock"):
        assert getattr(old, field) == getattr(new, field), field
    arrays = [
        [one.pairs, one.blocks, one.events.users, one.events.items, one.events.times, *one.state.values()]
        for one in (old, new)
    ]
    assert [(array.dtype, array.tobytes()) for array in arrays[0]] == [(a.dtype, a.tobytes()) for a in arrays[1]]
    assert list(old.state) == list(new.state)
    assert [one[1:] for one in old.inbox] == [one[1:] for one in new.inbox]
    assert [one[:3] for one in old.answers] == [one[:3] for one in new.answers]
    left = [[answer.expires - one.seconds for answer in one.answers] for one in (old, new)]
    assert left[0] == pytest.approx(left[1], abs=60)


def answers(engine: Engine) -> list[object]:
    users = engine.sample_users(100)
    return [
        *(engine.recommend(found.id, 20) for found in users),
        engine.similar_items("item 1", 20),
        engine.user("ann"),
        engine.item("new"),
        state_of(engine),
    ]


@pytest.mark.parametrize(("name", "base"), [("felrec-s", False), ("felrec-q", True), ("bpr-mf", True)])
def test_a_copy_has_the_same_contents_and_gives_the_same_answers(
    places: tuple[Place, Place], name: str, base: bool
) -> None:
    old, new = places
    fill(old, model_of(name, base))
    move(old, new)
    same(contents_at(old), contents_at(new))
    engines = [opened(place, model_of(name, base)) for place in places]
    assert engines[0].health().events == engines[1].health().events
    assert answers(engines[0]) == answers(engines[1])
    receipts = [post(engine, [("bob", "item 5", 3e9)]) for engine in engines]
    assert receipts[0] == receipts[1]
    first = post(engines[1], [("ignored", "the key is known", 1.0)], KEY)
    assert first.accepted == 301
    assert answers(engines[0]) == answers(engines[1])
    for engine in engines:
        engine.close()


def test_a_replay_on_a_server_is_a_replay_in_a_file(places: tuple[Place, Place]) -> None:
    old, new = places
    fill(old, fitted("felrec-s"))
    with store_at(new.address, new.namespace) as target:
        replay_store(contents_at(old), fitted("felrec-s", seed=1), target, None)
    contents = contents_at(new)
    assert contents.events.times.tobytes() == contents_at(old).events.times.tobytes()
    assert len(contents.inbox) == 1
    engine = opened(new, fitted("felrec-s", seed=1))
    assert engine.user("ann").history[0].id == "item 1"
    engine.close()


def test_a_place_that_is_taken_is_refused(places: tuple[Place, Place]) -> None:
    old, new = places
    fill(old, fitted("felrec-s"))
    move(old, new)
    before = contents_at(new)
    with pytest.raises(StoreError, match=r"exists; give|has a store or other tables in .*; choose another --namespace"):
        move(old, new)
    same(before, contents_at(new))


def test_a_copy_that_fails_or_is_killed_leaves_no_store(places: tuple[Place, Place]) -> None:
    old, new = places
    fill(old, fitted("felrec-s"))
    damaged = replace(contents_at(old), applied=99)
    with pytest.raises(StoreError, match="new store is damaged"), store_at(new.address, new.namespace) as target:
        copy_store(damaged, target)
    with pytest.raises(StoreError, match="no such store"):
        contents_at(new)
    if new.namespace is not None:  # what a kill leaves
        beside = Place(new.address, unfinished_namespace(new.namespace))
        with beside.alone() as killed:
            copy_store(contents_at(old), killed)
        move(old, new)
        with pytest.raises(StoreError, match="no such store"):
            beside.alone("read")
    else:
        move(old, new)
    same(contents_at(old), contents_at(new))


def test_an_unfinished_erasure_is_finished_first(places: tuple[Place, Place]) -> None:
    old, new = places
    fill(old, fitted("felrec-s"))
    rows = np.zeros(1, dtype=np.int32)
    contents = replace(contents_at(old), unfinished=Unfinished(0, rows, np.ones(1, dtype=np.int64), [0], []))
    with (
        pytest.raises(StoreError, match="an erasure is not finished; open the store with felrec serve"),
        store_at(new.address, new.namespace) as target,
    ):
        copy_store(contents, target)
