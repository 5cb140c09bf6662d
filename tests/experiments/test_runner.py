"""The runner: no work is repeated, plans are kept, and models over budget are trained on less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from felrec import runs as work
from felrec.errors import ConfigError, TrainingError
from felrec.experiments import Data, ExperimentRunner, Scale, reproduce
from felrec.experiments import runner as module
from felrec.experiments.budget import Speed
from felrec.training.trainer import Trainer

from .conftest import SCALE, TINY

MODELS = ("bpr-mf", "popularity", "felrec-q")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Every training step of every model that this process takes: model, epoch and step."""
    taken: list[tuple[str, int, int]] = []
    step = Trainer._train_step

    def counted(self: Trainer, batch: Any) -> None:
        taken.append((self.run.manifest["model"], self.epoch, self.step))
        step(self, batch)

    monkeypatch.setattr(Trainer, "_train_step", counted)
    return taken


def table(runner: ExperimentRunner, log: Data, out: Path) -> dict[str, Any]:
    reproduce("table-movielens", runner, [log], out)
    told: dict[str, Any] = json.loads((out / "table-movielens.json").read_text())
    return {row["model"]: row["partitions"] for row in told["rows"]}


def test_killed_between_models_it_goes_on_at_the_next(
    log: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Any]
) -> None:
    whole = table(ExperimentRunner(tmp_path / "whole", SCALE, MODELS, TINY), log, tmp_path / "1")
    once = list(steps)
    steps.clear()
    evaluate = work.evaluate

    def interrupted(model: Any, *args: Any, **options: Any) -> Any:
        if model.name == "popularity":
            raise KeyboardInterrupt
        return evaluate(model, *args, **options)

    monkeypatch.setattr(work, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table(ExperimentRunner(tmp_path / "killed", SCALE, MODELS, TINY), log, tmp_path / "2")
    assert {model for model, _, _ in steps} == {"bpr-mf"}
    monkeypatch.setattr(work, "evaluate", evaluate)
    resumed = table(ExperimentRunner(tmp_path / "killed", SCALE, MODELS, TINY), log, tmp_path / "2")
    assert steps == once  # bpr-mf was not trained again
    assert resumed == whole


def test_killed_within_a_model_it_goes_on_at_its_step(
    log: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Any]
) -> None:
    settings = {**TINY, "checkpoint_seconds": 1e-9}  # after every step
    whole = table(ExperimentRunner(tmp_path / "whole", SCALE, MODELS, settings), log, tmp_path / "1")
    once = list(steps)
    steps.clear()
    save = Trainer._save_resume

    def interrupted(self: Trainer) -> None:
        save(self)
        if self.run.manifest["model"] == "felrec-q" and self.step == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "_save_resume", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table(ExperimentRunner(tmp_path / "killed", SCALE, MODELS, settings), log, tmp_path / "2")
    assert steps[-1] == ("felrec-q", 0, 2)
    monkeypatch.setattr(Trainer, "_save_resume", save)
    resumed = table(ExperimentRunner(tmp_path / "killed", SCALE, MODELS, settings), log, tmp_path / "2")
    assert steps == once
    assert resumed == whole


def test_a_plan_is_made_once(log: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured again it would come out otherwise, and the learning rate's schedule would not fit."""
    speeds = iter([Speed(1e-3, 4e-4, 1e-3)])
    monkeypatch.setattr(module, "measure", lambda *args: next(speeds))
    runner = ExperimentRunner(tmp_path, Scale(minutes=0.05), settings=TINY)
    first = runner.result(runner.trial("felrec-q"), log)
    assert first.plan is not None
    assert first.plan.epochs == int(3 / (len(log.split.train) * 1e-3 + len(log.split.validation) * 1e-3))
    assert first.manifest["training"]["epochs"] == len(first.manifest["epochs"]) == first.plan.epochs
    assert runner.result(runner.trial("felrec-q"), log).plan == first.plan


def test_what_does_not_fit_is_trained_on_the_newest_events_and_tested_on_the_whole_log(
    log: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "measure", lambda *args: Speed(1.0, 0.5, 0.0))
    runner = ExperimentRunner(tmp_path, Scale(minutes=5), ("felrec-q", "popularity"), TINY)
    result = runner.result(runner.trial("felrec-q"), log)
    assert result.plan is not None
    assert result.plan.train_events == result.manifest["split"]["train_end"] == 600
    assert result.report.cache == "reset"
    assert len(result.report.results.events) == len(log.split.test)
    reproduce("table-movielens", runner, [log], tmp_path / "out")
    text = (tmp_path / "out" / "table-movielens.md").read_text()
    assert "no epoch with its validation fits the budget of felrec-q" in text
    assert "| 25 % | 600 |" in text


def test_a_trial_that_diverges_keeps_the_epoch_that_validation_chose(
    log: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Any]
) -> None:
    step = Trainer._train_step

    def diverging(self: Trainer, batch: Any) -> None:
        if self.epoch == 1:
            self._stop("the loss became nan")
        step(self, batch)

    monkeypatch.setattr(Trainer, "_train_step", diverging)
    runner = ExperimentRunner(tmp_path, Scale(epochs=3), ("felrec-q",), TINY)
    result = runner.result(runner.trial("felrec-q"), log)
    assert result.manifest["best"]["epoch"] == 1
    assert "nan" in result.manifest["diverged"]
    before = len(steps)
    runner.result(runner.trial("felrec-q"), log)
    assert len(steps) == before
    reproduce("table-movielens", runner, [log], tmp_path / "out")
    assert "1 (1), then diverged" in (tmp_path / "out" / "table-movielens.md").read_text()


def test_a_trial_that_diverges_at_once_is_an_error_with_its_name(log: Data, tmp_path: Path) -> None:
    runner = ExperimentRunner(tmp_path, Scale(epochs=1), ("felrec-q",), {**TINY, "lr": 1e30, "warmup": 0})
    with pytest.raises(TrainingError, match="felrec-q: "):
        runner.result(runner.trial("felrec-q"), log)


def test_names_of_runs_say_what_differs(log: Data, tmp_path: Path) -> None:
    runner = ExperimentRunner(tmp_path, Scale(events=0.5, minutes=20), settings={"width": "16"}, search_lr=True)
    folder = runner.folder(runner.trial("felrec-q", normalisation="layer"), log)
    assert folder.name == "felrec-q,normalisation=layer,width=16,minutes=20,lr=searched"
    assert folder.parent.name == f"alpha-{log.split.log.fingerprint[:8]}"
    assert (
        runner.folder(runner.trial("popularity"), log).name == "popularity"
    )  # no gradients: the budget is nothing to it


def test_a_very_long_name_is_cut_and_stays_its_own(log: Data, tmp_path: Path) -> None:
    runner = ExperimentRunner(
        tmp_path, settings={**TINY, "weight_decay": 0.001, "checkpoint_seconds": 60, "patience": 7, "lr": 0.02}
    )
    names = [runner.folder(runner.trial("felrec-q", seed=seed), log).name for seed in (1, 2)]
    assert len(names[0]) < 140
    assert names[0] != names[1]


def test_models_come_in_the_papers_order_and_new_ones_after_them() -> None:
    known = ExperimentRunner(Path()).chosen()
    assert known.index("sasrec") < known.index("popularity") < known.index("felrec-q") < known.index("felrec-p")
    assert ExperimentRunner(Path(), models=("felrec-q", "popularity")).chosen() == ["popularity", "felrec-q"]
    assert ExperimentRunner(Path()).chosen(("felrec-q", "not-there-yet")) == ["felrec-q"]
    with pytest.raises(ConfigError, match="unknown model"):
        ExperimentRunner(Path(), models=("felrec-x",)).chosen()


def test_each_trial_of_a_search_gets_a_tenth_of_the_budget(
    log: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "measure", lambda *args: Speed(1e-3, 4e-4, 1e-3))
    runner = ExperimentRunner(tmp_path, Scale(minutes=0.5), settings={**TINY, "epochs": 1_000})
    whole, trial = runner._plans(runner.trial("felrec-q"), log)
    assert whole.epochs > 20
    assert trial.epochs == whole.epochs // 10
