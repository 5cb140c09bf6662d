"""Weights for logs nobody has seen: training on several logs, and the weights that come with felrec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import felrec
from felrec.baselines.popularity import DecayedPopularity, DecayedPopularitySettings
from felrec.data.split import Split, split_log
from felrec.data.synthetic import synthetic_log
from felrec.data.tables.decayed_counts import HALF_LIFE_CHOICES
from felrec.data.worlds import synthetic_worlds
from felrec.errors import CheckpointError, ConfigError
from felrec.evaluation.report import evaluate
from felrec.pretrained import load_pretrained, load_weights
from felrec.pretraining import pretrain
from killed import KillAfter, KilledError

TINY: dict[str, Any] = {
    **{"width": 8, "heads": 2, "feed_forward": 8, "history_length": 4, "own_items": 8, "near_items": 8},
    **{"next_items": 4, "hidden": 8, "epochs": 2, "batch_size": 64},
}


@pytest.fixture(scope="module")
def splits() -> list[Split]:
    return [split_log(log) for log in synthetic_worlds(2, 800, seed=7)]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_weights(folder).recommender.weights()


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(splits: list[Split], tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        pretrain(splits, tmp_path / name, {**TINY, "seed": seed})
    one, again, other = (weights(tmp_path / name) for name in ("one", "again", "other"))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_killed_one_goes_on_as_if_nothing_had_been(splits: list[Split], tmp_path: Path) -> None:
    pretrain(splits, tmp_path / "whole", TINY)
    with pytest.raises(KilledError):
        pretrain(splits, tmp_path / "cut", {**TINY, "checkpoint_seconds": 1e-9}, listeners=(KillAfter(12),))
    pretrain(splits, tmp_path / "cut", {**TINY, "checkpoint_seconds": 1e-9}, resume=True)
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_it_learns_from_every_log(splits: list[Split], tmp_path: Path) -> None:
    """Leaving a log out gives other weights."""
    pretrain(splits, tmp_path / "both", TINY)
    pretrain(splits[:1], tmp_path / "first", TINY)
    both, first = weights(tmp_path / "both"), weights(tmp_path / "first")
    assert any(not torch.equal(both[name], first[name]) for name in both)


def test_what_cannot_be_resumed_or_read_is_said(splits: list[Split], tmp_path: Path) -> None:
    pretrain(splits[:1], tmp_path / "w", TINY)
    with pytest.raises(ConfigError, match="was started with other logs"):
        pretrain(splits, tmp_path / "w", TINY, resume=True)
    with pytest.raises(ConfigError, match="give logs"):
        pretrain([], tmp_path / "none")
    (tmp_path / "w" / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read"):
        felrec.load(tmp_path / "w")


def test_signals_of_one_log_are_refused(splits: list[Split], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belongs to the vectors of one log; leave it out"):
        pretrain(splits, tmp_path / "sequence", {**TINY, "recipe": "sequence"})


def test_shipped_weights_beat_decayed_popularity_on_a_log_they_were_not_trained_on() -> None:
    split = split_log(synthetic_log(12_000, n_users=700, n_items=600, tastes=10, basket=3.0, seed=12_345).log)
    rivals = [DecayedPopularity(DecayedPopularitySettings(half_life=half_life)) for half_life in HALF_LIFE_CHOICES]
    ours = evaluate(load_pretrained().recommender, split, model="pretrained", cache="reset")
    for metric in ("hr@10", "mrr"):
        best = max(evaluate(rival, split, model="d", cache="reset").metric(metric) for rival in rivals)
        assert ours.metric(metric) > 1.1 * best


def test_shipped_weights_recommend_from_the_first_events_on() -> None:
    model = load_pretrained()
    assert model.recommend("someone") == []
    model.observe([("ada", "tea", 0), ("ada", "milk", 60), ("bob", "tea", 120)])
    assert [item for item, _ in model.recommend("bob", exclude_seen=True)] == ["milk"]
    assert {item for item, _ in model.recommend("nobody knows")} == {"tea", "milk"}


def test_shipped_weights_are_small() -> None:
    folder = Path(felrec.__file__).parent / "weights"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 4_000_000
    assert "movietweetings" in (folder / "README.md").read_text()
