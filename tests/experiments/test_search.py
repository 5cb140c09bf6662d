"""The learning-rate search: the same for every model, on validation, each rate tried once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from felrec.comparison import Silent, trials
from felrec.comparison.trials import Trial
from felrec.errors import TrainingError
from felrec.experiments import Data, ExperimentRunner, Scale, search
from felrec.experiments.search import RATES, at_the_edge, best_rate, search_rate

from .conftest import TINY


def test_the_best_validation_rank_wins() -> None:
    tried: dict[str, dict[str, Any]] = {
        "0.1": {"rank": 0.3, "hr@10": 0.9},
        "0.01": {"rank": 0.2, "hr@10": 0.1},
        "0.001": {"diverged": "nan"},
    }
    assert best_rate(tried, "sasrec") == 0.01


def test_if_all_diverge_it_is_an_error_that_names_the_model() -> None:
    with pytest.raises(TrainingError, match="sasrec"):
        best_rate({"0.1": {"diverged": "nan"}}, "sasrec")


def test_the_page_can_say_where_another_rate_might_be_better() -> None:
    last: dict[str, dict[str, Any]] = {"0.1": {"rank": 0.3}, "0.01": {"rank": 0.2}, "0.001": {"rank": 0.1}}
    middle: dict[str, dict[str, Any]] = {**last, "0.01": {"rank": 0.05}}
    first: dict[str, dict[str, Any]] = {**last, "0.1": {"rank": 0.01}}
    assert at_the_edge([("sasrec", last), ("bpr-mf", middle), ("jodie", first)]) == ["sasrec", "jodie"]


@pytest.fixture
def trial() -> Trial:
    return Trial("felrec-q", "felrec-q", {**TINY, "epochs": 1})


def test_an_interrupted_search_goes_on_where_it_was(
    log: Data, trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, began = trials.train_trial, []

    def interrupted(trial: Trial, *args: Any, **options: Any) -> Any:
        began.append(trial.settings["lr"])
        if began == [0.1, 0.01]:
            raise KeyboardInterrupt
        return train(trial, *args, **options)

    monkeypatch.setattr(search, "train_trial", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search_rate(trial, log.split, tmp_path, Silent(), "cpu")
    tried = search_rate(trial, log.split, tmp_path, Silent(), "cpu")
    assert began == [0.1, 0.01, *RATES[1:]]
    assert list(tried) == [f"{rate:g}" for rate in RATES]
    assert all(0 < result["rank"] < 1 and result["cpu_seconds"] > 0 for result in tried.values())
    assert not list(tmp_path.glob("*search-*"))  # only the results are kept


def test_a_kill_while_a_trial_is_removed_does_no_harm(
    log: Data, trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shutil.rmtree

    def half(folder: Path, ignore_errors: bool = False) -> None:
        if "search-" in folder.name and folder.exists():
            (folder / "manifest.json").unlink()
            raise KeyboardInterrupt
        whole(folder, ignore_errors)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", half)
        with pytest.raises(KeyboardInterrupt):
            search_rate(trial, log.split, tmp_path, Silent(), "cpu")
    assert len(search_rate(trial, log.split, tmp_path, Silent(), "cpu")) == len(RATES)
    assert not list(tmp_path.glob("*search-*"))


def test_a_rate_that_diverges_loses(log: Data, trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "RATES", (1e30, 0.01))
    tried = search_rate(trial, log.split, tmp_path, Silent(), "cpu")
    assert "diverged" in tried["1e+30"]
    assert best_rate(tried, "felrec-q") == 0.01


def test_the_chosen_rate_is_trained_with_and_told(log: Data, tmp_path: Path) -> None:
    runner = ExperimentRunner(tmp_path, Scale(epochs=1), settings=TINY, search_lr=True)
    result = runner.result(runner.trial("felrec-q"), log)
    assert result.search is not None
    assert result.manifest["training"]["lr"] == best_rate(result.search, "felrec-q")
    assert json.loads((result.run / "search.json").read_text()) == result.search
    assert "lr=searched" in result.run.name
