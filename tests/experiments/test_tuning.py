"""The random search: what is tried, judged and kept; nothing is done twice, and the test part has no say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from felrec.comparison import trials
from felrec.comparison.trials import Trial
from felrec.data.split import Split
from felrec.data.synthetic import synthetic_log
from felrec.errors import ConfigError, TrainingError
from felrec.experiments import Data, ExperimentRunner, Scale
from felrec.experiments import runner as module
from felrec.experiments.budget import Speed
from felrec.experiments.space import Choice, Range, Space, combinations, read_space
from felrec.experiments.tuning import FILE, Attempt, best_of, for_tuning, tune
from felrec.registry import model_kind

from .conftest import TINY

S = model_kind("felrec-s")
SPACE: Space = {"half_life": Range(5, 5_000, whole=True)}
LOG = synthetic_log(1_000, n_users=40, n_items=50, seed=1).log


def search(out: Path, count: int, space: Space = SPACE, log: Any = LOG, **options: Any) -> list[Attempt]:
    runner = ExperimentRunner(out / "runs", models=("decayed-popularity",))
    return tune("decayed-popularity", space, for_tuning("log", log, Scale()), out, runner, trials=count, **options)


def test_what_is_tried() -> None:
    space = read_space(["lr=1e-4..1", "hidden=8..64", "optimizer=sgd,adamw", "item-loss=0..0.5"], S)
    drawn = combinations(space, {}, S, 200, seed=0)
    assert drawn[0] == {}
    assert len({tuple(one.items()) for one in drawn}) == 200
    rates = np.array([float(one["lr"]) for one in drawn[1:]])
    assert 1e-4 <= rates.min() < 1e-3
    assert 0.4 < (rates < 0.01).mean() < 0.6  # by the logarithm: half of them below the middle
    assert 0.4 < np.mean([float(one["item_loss"]) < 0.25 for one in drawn[1:]]) < 0.6
    assert {int(one["hidden"]) for one in drawn[1:]} <= set(range(8, 65))
    assert {one["optimizer"] for one in drawn[1:]} == {"sgd", "adamw"}
    assert combinations(space, {}, S, 20, seed=0) == drawn[:20]
    assert combinations(space, {}, S, 20, seed=1) != drawn[:20]


def test_combinations_that_do_not_fit_are_not_drawn_and_a_small_space_ends() -> None:
    space = read_space(["width=6,8", "heads=3,4"], S)
    found = {(one["width"], one["heads"]) for one in combinations(space, {}, S, 50, seed=0)[1:]}
    assert found == {("6", "3"), ("8", "4")}
    with pytest.raises(ConfigError, match="multiple of heads"):
        combinations(read_space(["width=6,10"], S), {}, S, 5, seed=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr", "lr=0.001..0.1"),
        ("lr=", "lr=0.001..0.1"),
        ("lr=1..0.1", "the lower first"),
        ("lr=a..b", "two numbers"),
        ("lr=0.1..", "two numbers"),
        ("lr=0..1", r"lr='0': .*greater than 0"),
        ("optimizer=sgd,adam", "optimizer='adam'"),
        ("nothing=1,2", "felrec-s has no setting 'nothing'"),
        ("exclude_seen=yes,no", "changes what is measured"),
        ("seed=0..9", "luck"),
    ],
)
def test_what_cannot_be_tried(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_space([text], S)
    with pytest.raises(ConfigError, match="nothing to try"):
        read_space([], S)


def test_the_best_on_validation_wins() -> None:
    tried = [
        Attempt({}, {"mrr": 0.1, "rank": 0.3, "hr@10": 0.2}, {}, 1.0),
        Attempt({"lr": "1"}, {"mrr": 0.3, "rank": 0.2, "hr@10": 0.2}, {}, 1.0),
        Attempt({"lr": "2"}, {"mrr": 0.2, "rank": 0.1, "hr@10": 0.2}, {}, 1.0),
        Attempt({"lr": "9"}, {}, {}, 1.0),
    ]
    assert [best_of(tried, by).settings for by in ("mrr", "rank", "hr@10")] == [{"lr": "1"}, {"lr": "2"}, {}]
    with pytest.raises(TrainingError, match="every trial"):
        best_of(tried[3:], "mrr")


def test_a_search_goes_on_where_it_was_and_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, trained = trials.train_trial, []

    def counted(trial: Trial, *args: Any, **options: Any) -> Any:
        trained.append(trial.name)
        if trained == ["trial 1/4", "trial 2/4", "trial 3/4"]:
            raise KeyboardInterrupt
        return train(trial, *args, **options)

    monkeypatch.setattr(module, "train_trial", counted)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, 4)
    found = search(tmp_path, 4)
    assert trained == ["trial 1/4", "trial 2/4", "trial 3/4", "trial 3/4", "trial 4/4"]
    assert [len(one.settings) for one in found] == [0, 1, 1, 1]
    assert all(0 < one.metrics["mrr"] < 1 and one.cpu_seconds > 0 for one in found)
    assert search(tmp_path, 5)[:4] == found
    assert trained[5:] == ["trial 5/5"]
    assert not list((tmp_path / "runs").rglob("manifest.json"))  # only the results are kept


def test_the_test_part_is_cut_off() -> None:
    split = for_tuning("log", LOG, Scale()).split
    assert split.log.fingerprint == LOG.part(0, 900).fingerprint
    assert (split.train_end, split.validation_end) == (800, 900)


def test_another_search_needs_another_folder(tmp_path: Path) -> None:
    search(tmp_path, 2)
    with pytest.raises(ConfigError, match="another try"):
        search(tmp_path, 2, {"half_life": Choice(("5", "5000"))})
    with pytest.raises(ConfigError, match="another seed"):
        search(tmp_path, 2, seed=1)
    with pytest.raises(ConfigError, match="another log"):
        search(tmp_path, 2, log=LOG.part(0, 800))


def test_models_over_budget_are_judged_by_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The speed is said to be so low that one epoch of the newest events is all that fits."""
    monkeypatch.setattr(module, "measure", lambda *args: Speed(1.0, 1.0, 0.0))
    runner = ExperimentRunner(tmp_path / "runs", Scale(minutes=5), ("felrec-q",), {**TINY, "batch_size": 16})
    data = for_tuning("log", LOG, Scale())
    judged: list[Split] = []
    monkeypatch.setattr("felrec.experiments.tuning.evaluate", _noting(judged))
    found = tune("felrec-q", {"lr": Range(0.001, 0.1, whole=False)}, data, tmp_path, runner, trials=2)
    assert [split.fingerprint for split in judged] == [data.split.fingerprint] * 2
    assert all(one.training["epochs"] == 1 and 0 < one.metrics["mrr"] < 1 for one in found)


def _noting(judged: list[Split]) -> Any:
    from felrec.evaluation.report import evaluate

    def noted(recommender: Any, split: Split, **options: Any) -> Any:
        judged.append(split)
        assert options["part"] == "validation"
        return evaluate(recommender, split, **options)

    return noted


def test_a_trial_that_diverges_loses(tmp_path: Path) -> None:
    runner = ExperimentRunner(tmp_path / "runs", Scale(epochs=1), ("felrec-q",), TINY)
    data: Data = for_tuning("log", LOG, Scale())
    found = tune("felrec-q", {"lr": Choice(("1e30",))}, data, tmp_path, runner, trials=2)
    assert found[1].metrics == {}
    assert best_of(found, "mrr") is found[0]
    told = json.loads((tmp_path / FILE).read_text())
    assert [one["settings"] for one in told["trials"]] == [{}, {"lr": "1e30"}]
    assert replace(found[0]) == Attempt(**told["trials"][0])
