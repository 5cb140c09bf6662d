"""From CPU minutes to a plan."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

from felrec.config import TrainingSettings
from felrec.experiments import budget
from felrec.experiments.budget import FEW_VALIDATIONS, SMALLEST_SHARE, Plan, Speed, is_trained, measure, newest, plan
from felrec.registry import MODELS, model_kind

from .conftest import TINY, data

SPLIT = data("alpha", 3).split  # 960 train events, 120 validation events
TRAIN, VALIDATION = len(SPLIT.train), len(SPLIT.validation)
SPEED = Speed(event=1e-3, event_at_smallest_share=4e-4, validated_event=1e-3)
EPOCH = TRAIN * 1e-3 + VALIDATION * 1e-3
WANTED = TrainingSettings(epochs=50, batch_size=2)


def test_as_many_epochs_as_fit() -> None:
    found = plan(SPEED, SPLIT, 7.5 * EPOCH, WANTED, whole=False)
    assert (found.epochs, found.trained_share, found.train_events) == (7, 1.0, None)
    assert found.seconds == pytest.approx(7 * EPOCH)
    assert found.cut(SPLIT) is SPLIT


def test_never_more_epochs_than_wanted() -> None:
    assert plan(SPEED, SPLIT, 1_000 * EPOCH, WANTED, whole=False).epochs == 50


def test_if_no_epoch_fits_fewer_events_give_gradients() -> None:
    found = plan(SPEED, SPLIT, 0.8 * EPOCH, WANTED, whole=False)
    assert (found.epochs, found.train_events) == (1, None)
    assert SMALLEST_SHARE < found.trained_share < 1
    assert found.seconds == pytest.approx(0.8 * EPOCH)


def test_then_only_the_newest_events_are_trained_on() -> None:
    found = plan(SPEED, SPLIT, 0.3 * EPOCH, WANTED, whole=False)
    assert (found.epochs, found.trained_share) == (1, SMALLEST_SHARE)
    assert found.train_events is not None
    assert found.seconds == pytest.approx(0.3 * EPOCH, rel=0.01)
    cut = found.cut(SPLIT)
    assert len(cut.train) == found.train_events


def test_a_model_without_that_setting_goes_straight_to_the_newest_events() -> None:
    found = plan(Speed(1e-3, 1e-3, 1e-3), SPLIT, 0.5 * EPOCH, WANTED, whole=False)
    assert found.trained_share == 1.0
    assert found.train_events == pytest.approx(0.5 * EPOCH / 1e-3 - VALIDATION, abs=1)


def test_a_model_that_belongs_to_its_log_sees_all_of_it() -> None:
    found = plan(SPEED, SPLIT, 0.3 * EPOCH, WANTED, whole=True)
    assert found.train_events is None
    assert found.trained_share < SMALLEST_SHARE
    assert found.seconds == pytest.approx(0.3 * EPOCH)
    over = plan(Speed(1e-3, 1e-3, 1e-3), SPLIT, 0.3 * EPOCH, WANTED, whole=True)
    assert over.seconds == pytest.approx(EPOCH)  # the table shows it


def test_newest_is_the_end_of_train_and_the_beginning_of_validation() -> None:
    cut = newest(SPLIT, 100)
    assert (len(cut.train), len(cut.validation), len(cut.test)) == (100, min(FEW_VALIDATIONS, VALIDATION), 0)
    np.testing.assert_array_equal(cut.train.times, SPLIT.train.times[-100:])
    np.testing.assert_array_equal(cut.validation.times, SPLIT.validation.times)


def test_a_plan_survives_its_json() -> None:
    found = plan(SPEED, SPLIT, 0.3 * EPOCH, WANTED, whole=False)
    assert Plan.from_json(found.to_json()) == found
    bare = Plan(3, 1.0, None, None)
    assert Plan.from_json(bare.to_json()) == bare


@pytest.mark.parametrize("name", [name for name, kind in MODELS.items() if is_trained(kind)])
def test_every_trained_model_can_be_measured(name: str) -> None:
    kind = model_kind(name)
    known = {key: value for key, value in TINY.items() if key in kind.settings.model_fields}
    speed = measure(kind, {**known, "batch_size": 128}, SPLIT, "cpu")
    assert speed.event > 0
    assert speed.event_at_smallest_share > 0
    assert speed.validated_event > 0


def test_the_first_step_of_an_optimiser_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowToStart(torch.optim.SGD):
        begun = False

        def step(self, *_: Any) -> None:  # type: ignore[override]
            until = time.process_time() + (0 if self.begun else 1)
            while time.process_time() < until:
                pass
            self.begun = True

    monkeypatch.setattr(budget, "build_optimiser", lambda parameters, _: SlowToStart(parameters))
    speed = measure(model_kind("bpr-mf"), {"width": 8, "batch_size": 128}, SPLIT, "cpu")
    assert speed.event < 0.5 / 128


def test_untrained_models_have_no_budget() -> None:
    assert not is_trained(model_kind("popularity"))
    assert is_trained(model_kind("felrec-q"))


def test_newest_validates_on_few_events_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FEW_VALIDATIONS", 50)
    cut = newest(SPLIT, 100)
    assert len(cut.validation) == 50
    np.testing.assert_array_equal(cut.validation.times, SPLIT.validation.times[:50])


def test_an_epoch_takes_as_long_as_all_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(torch.optim.SGD):
        def step(self, *_: Any) -> None:  # type: ignore[override]
            until = time.process_time() + 0.05
            while time.process_time() < until:
                pass

    monkeypatch.setattr(budget, "build_optimiser", lambda parameters, _: Slow(parameters))
    speed = measure(model_kind("bpr-mf"), {"width": 8, "batch_size": 128}, SPLIT, "cpu")
    assert 7 * 0.05 <= speed.event * TRAIN < 3 * 8 * 0.05  # eight steps, or seven where a remainder is joined
