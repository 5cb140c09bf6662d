"""The map: the red dots are a real interaction, brighter is a better match, and files round-trip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import needs
from felrec.abilities import Representing
from felrec.experiments import Data, ExperimentRunner
from felrec.experiments.taste_map import TasteMap, plot_maps, taste_map
from felrec.recommender import Queries

needs.package("openTSNE")


@pytest.fixture
def model(runner: ExperimentRunner, log: Data) -> Representing:
    found = runner.before_test(runner.trial("bpr-mf"), log).recommender
    assert isinstance(found, Representing)
    return found


def test_the_pair_and_the_colours(model: Representing, log: Data, tmp_path: Path) -> None:
    found = taste_map(model, log.split)
    known = log.split.log[: log.split.validation_end]
    users, items = np.unique(known.users), np.unique(known.items)
    items = items[items < model.items]  # type: ignore[attr-defined]
    assert found.users.points.shape == (len(users), 2)
    assert found.items.points.shape == (len(items), 2)
    user, item = users[found.users.chosen], items[found.items.chosen]
    assert (user, item) in set(zip(known.users.tolist(), known.items.tolist(), strict=True))
    assert found.items.match[found.items.chosen] >= 0.9  # among the user's best tenth
    scores = model.score(Queries.now(np.array([user]), 0.0), items)[0].numpy()
    np.testing.assert_array_equal(np.argsort(found.items.match), np.argsort(scores, kind="stable"))
    fits = model.score(Queries.now(users, 0.0), np.array([item], dtype=np.int32))[:, 0].numpy()
    assert np.corrcoef(found.users.match, np.argsort(np.argsort(fits)))[0, 1] > 0.99

    found.save(tmp_path / "map.parquet")
    again = TasteMap.load(tmp_path / "map.parquet")
    np.testing.assert_array_equal(again.users.points, found.users.points)
    assert again.items.chosen == found.items.chosen
    plot_maps({"bpr-mf": again}, "Map", tmp_path / "map.svg")
    assert "<svg" in (tmp_path / "map.svg").read_text()
