"""The map maker: places similar points together, works in the background, and reports why it cannot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import felrec
import needs
from felrec import runs
from felrec.data.synthetic import synthetic_log
from felrec.fitted import FittedModel
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes
from felrec.service.http import map as maps
from felrec.service.http.map import Cartographer, MapMatch, MapOfAll, embed
from felrec.store.sqlite import SqliteStore
from stores import Given, post


def opened(model: FittedModel, folder: Path) -> Engine:
    return Engine.open(SqliteStore(folder / "store.sqlite"), model)


@pytest.fixture
def engine(run: Path, tmp_path: Path) -> Iterator[Engine]:
    made = opened(runs.load(run), tmp_path)
    yield made
    made.close()


def finished(cartographer: Cartographer, after: MapOfAll | None = None) -> MapOfAll:
    until = time.monotonic() + 100
    while time.monotonic() < until:
        found = cartographer.latest()
        if found.ready and (after is None or found.version != after.version):
            return found
        time.sleep(0.05)
    raise AssertionError("no map")


def test_near_vectors_lie_together() -> None:
    needs.package("openTSNE")
    rng = np.random.default_rng(0)
    centres = np.eye(8)[np.arange(60) % 2]
    places = embed((centres + 0.1 * rng.normal(size=(60, 8))).astype(np.float32))
    first, second = places[0::2], places[1::2]
    apart = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
    assert apart > 2 * max(part.std(axis=0).max() for part in (first, second))


def test_items_have_their_current_titles(engine: Engine) -> None:
    needs.package("openTSNE")
    cartographer = Cartographer(engine)
    made = finished(cartographer)
    assert made.items[0].title is None
    engine.put_item(made.items[0].id, Attributes("A new title")).result()
    now = cartographer.latest()
    assert (now.version, now.items[0].title) == (made.version, "A new title")


def test_a_map_is_computed_once_and_again_when_the_store_has_grown(engine: Engine) -> None:
    needs.package("openTSNE")
    cartographer = Cartographer(engine)
    waiting = cartographer.latest()
    assert waiting.working
    assert "t-SNE" in str(waiting.message)
    assert cartographer.match(user="5") == MapMatch(0, (), ())
    made = finished(cartographer)
    assert len(made.users) == engine.health().users
    assert cartographer.latest() == made
    match = cartographer.match(item=made.items[0].id)
    assert (match.version, len(match.users), len(match.items)) == (made.version, len(made.users), len(made.items))
    assert match.items[0] == pytest.approx(1.0, abs=1e-4)
    crowd: list[Given] = [(f"user {number}", "1") for number in range(engine.health().events // 2)]
    post(engine, crowd)
    assert len(finished(cartographer, after=made).users) > len(made.users)


def test_a_map_does_not_show_erased_users(engine: Engine) -> None:
    needs.package("openTSNE")
    cartographer = Cartographer(engine)
    made = finished(cartographer)
    gone = made.users[3].id
    post(engine, [(gone, "a draft of their own")])
    cartographer._map = made = replace(made, items=(*made.items, replace(made.items[0], id="a draft of their own")))
    engine.erase_user(gone).result()
    shown = cartographer.latest()
    assert shown.ready
    assert [point.id for point in shown.users] == [point.id for point in made.users if point.id != gone]
    left = engine.known("item", [point.id for point in made.items])
    assert "a draft of their own" not in left
    assert [point.id for point in shown.items] == left
    assert cartographer.match(item=shown.items[0].id).version == shown.version != made.version


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    engine = opened(felrec.load_pretrained(), tmp_path)
    cartographer = Cartographer(engine)
    said = cartographer.latest()
    assert (said.ready, said.working) == (False, False)
    assert said.message is not None
    assert said.message.startswith("The store is empty")
    post(engine, [("ada", "tea")])
    assert cartographer.latest().message != said.message
    engine.close()


def test_without_open_tsne_it_says_what_to_install(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "find_spec", lambda name: None)
    assert Cartographer(engine).latest() == MapOfAll(ready=False, working=False, message=maps.NEEDS)


def test_a_model_without_vectors_has_no_map(tmp_path: Path) -> None:
    needs.package("openTSNE")
    log = synthetic_log(300, n_users=20, n_items=20, seed=1).log
    engine = opened(runs.fit(log, model="popularity"), tmp_path)
    cartographer = Cartographer(engine)
    told = cartographer.latest()
    until = time.monotonic() + 30
    while told.working and time.monotonic() < until:
        time.sleep(0.05)
        told = cartographer.latest()
    assert "no vectors" in str(told.message)
    engine.close()
