"""Training: resuming, choosing the best epoch, stopping, and never losing a good checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from felrec.cli.progress import TrainingProgress, event_bar
from felrec.config import TrainingSettings
from felrec.data.batches import TimeBatch, batch_bounds
from felrec.data.events import Events
from felrec.errors import CheckpointError, TrainingError
from felrec.model.paper.felrec import FELRec, FELRecSettings
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import StopTraining, Trainer
from killed import KillAfter, KilledError

SMALL: dict[str, Any] = {"width": 8, "layers": 1, "heads": 2, "feed_forward": 16, "history_length": 4, "queue_size": 50}
GENERATOR = np.random.default_rng(0)
EVENTS = Events.of(GENERATOR.integers(0, 20, 330), GENERATOR.integers(0, 15, 330), np.arange(330))


class Ranks:
    """Validation that reads its ranks from a list and observes an event, as a real one would."""

    def __init__(self, model: FELRec, ranks: list[float]) -> None:
        self.model, self.ranks = model, iter(ranks)

    def __call__(self) -> dict[str, float]:
        assert not self.model.training
        self.model.observe(EVENTS[:3])
        return {"rank": next(self.ranks), "hr@10": 0.0, "mrr": 0.0}


def trainer(path: Path, ranks: list[float], *listeners: Any, **settings: Any) -> Trainer:
    run = RunDirectory.open(path) if (path / "manifest.json").exists() else RunDirectory.create(path, {})
    chosen = TrainingSettings(**{"epochs": 3, "batch_size": 64, "checkpoint_seconds": 1e-6, **settings})
    model = FELRec(FELRecSettings(**SMALL), seed=chosen.seed)
    made = Trainer(model, EVENTS, chosen, run, Ranks(model, ranks), listeners)
    made.resume()
    return made


def test_batches_cover_every_event_and_never_end_with_a_single_one() -> None:
    for events in range(2, 40):
        for size in (2, 3, 7):
            bounds = batch_bounds(events, size)
            sizes = np.diff(bounds)
            assert bounds[0] == 0
            assert bounds[-1] == events
            assert (sizes >= 2).all()
            assert (sizes <= size + 1).all()


def test_the_best_epoch_is_kept_with_its_states(tmp_path: Path) -> None:
    made = trainer(tmp_path, [0.5, 0.2, 0.3])
    made.fit()
    run = RunDirectory.open(tmp_path)
    assert run.manifest["best"]["epoch"] == 2
    assert run.manifest["finished"] is True
    assert [record["rank"] for record in run.manifest["epochs"]] == [0.5, 0.2, 0.3]
    assert not same(run.read("best", "weights"), made.model.weights())
    train_count = run.read("best", "state_train")["user_count"].sum()
    assert train_count == len(EVENTS)
    assert run.read("best", "state_validation")["user_count"].sum() == len(EVENTS) + 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best-0002", "manifest.json"]


def test_validation_leaves_training_as_it_was(tmp_path: Path) -> None:
    quiet, watched = trainer(tmp_path / "a", [0.5] * 3), trainer(tmp_path / "b", [0.5] * 99, validate_every=2)
    quiet.fit()
    watched.fit()
    assert same(quiet.model.weights(), watched.model.weights())
    assert len(watched.run.manifest["within_epochs"]) == 3 * 2


@pytest.mark.parametrize("settings", [{}, {"optimizer": "adamw"}, {"trained_share": 0.25}])
@pytest.mark.parametrize("killed_at", [1, 4, 6, 9, 14])
def test_resuming_gives_the_result_of_an_uninterrupted_run(
    tmp_path: Path, killed_at: int, settings: dict[str, Any]
) -> None:
    whole = trainer(tmp_path / "whole", [0.5, 0.4, 0.3], **settings)
    whole.fit()
    ranks = [0.5, 0.4, 0.3]
    first = trainer(tmp_path / "cut", ranks, KillAfter(killed_at), **settings)
    with pytest.raises(KilledError):
        first.fit()
    done = len(RunDirectory.open(tmp_path / "cut").manifest.get("epochs", []))
    second = trainer(tmp_path / "cut", ranks[done:], **settings)
    second.fit()
    assert same(whole.model.weights(), second.model.weights())
    assert whole.run.manifest["best"]["sha256"] == second.run.manifest["best"]["sha256"]
    assert [r["loss"] for r in whole.run.manifest["epochs"]] == [r["loss"] for r in second.run.manifest["epochs"]]


def test_patience_stops_early(tmp_path: Path) -> None:
    made = trainer(tmp_path, [0.5, 0.4, 0.45, 0.41, 0.1], epochs=5, patience=2)
    made.fit()
    assert len(made.run.manifest["epochs"]) == 4
    assert made.run.manifest["best"]["epoch"] == 2


def test_a_loss_that_is_not_finite_stops_and_keeps_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(tmp_path, [0.5, 0.4, 0.3])
    real, calls = FELRec.loss, iter(range(99))

    def explodes(self: FELRec, batch: TimeBatch) -> Tensor:
        loss = real(self, batch)
        return loss * torch.nan if next(calls) == 7 else loss

    monkeypatch.setattr(FELRec, "loss", explodes)
    with pytest.raises(TrainingError, match=r"became nan in epoch 2, step 2; the best checkpoint \(epoch 1\) is kept"):
        made.fit()
    run = RunDirectory.open(tmp_path)
    assert all(bool(t.isfinite().all()) for t in run.read("best", "weights").values())
    assert all(bool(t.isfinite().all()) for t in run.read("resume", "weights").values())


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    made = trainer(tmp_path, [0.5])
    made.model.encoder.output.bias.data[0] = torch.nan  # type: ignore[attr-defined]
    with pytest.raises(TrainingError):
        made._save_resume()
    assert "resume" not in RunDirectory.open(tmp_path).manifest


def test_weights_that_are_not_finite_never_become_the_best(tmp_path: Path) -> None:
    class Poison(KillAfter):
        def step(self, **_: Any) -> None:
            self.left -= 1
            if self.left == 0:  # the last step of epoch 2: no later loss would notice before the checkpoint
                made.model.encoder.output.bias.data[0] = torch.nan  # type: ignore[attr-defined]

    made = trainer(tmp_path, [0.5, 0.1, 0.1], Poison(12))
    with pytest.raises(TrainingError, match=r"weights are no longer finite.*\(epoch 1\) is kept"):
        made.fit()
    assert all(bool(t.isfinite().all()) for t in RunDirectory.open(tmp_path).read("best", "weights").values())


@pytest.mark.parametrize("last", [2, 6])
def test_a_listener_ends_a_training_after_a_step_and_it_resumes_there(tmp_path: Path, last: int) -> None:
    class Stops:
        def step(self, *, step: int, **_: Any) -> None:
            if step == last:
                raise StopTraining

    ranks, seldom = [0.5, 0.4, 0.3], {"checkpoint_seconds": 1e6}
    whole = trainer(tmp_path / "whole", ranks, **seldom)
    whole.fit()
    with pytest.raises(StopTraining):
        trainer(tmp_path / "stopped", ranks, Stops(), **seldom).fit()
    assert RunDirectory.open(tmp_path / "stopped").manifest["resume"]["step"] == last
    again = trainer(tmp_path / "stopped", ranks, **seldom)
    assert (again.epoch, again.step) == (0, last)
    again.fit()
    weights = [made.run.read("best", "weights") for made in (whole, again)]
    assert all(bool((weights[0][name] == weights[1][name]).all()) for name in weights[0])


def test_a_run_killed_while_validating_resumes(tmp_path: Path) -> None:
    class Dies:
        def __call__(self) -> dict[str, float]:
            raise KilledError

    made = trainer(tmp_path, [0.5])
    made.validate = Dies()
    with pytest.raises(KilledError):
        made.fit()
    assert RunDirectory.open(tmp_path).manifest["resume"]["step"] == 6
    again = trainer(tmp_path, [0.5, 0.4, 0.3], TrainingProgress("m", tmp_path, event_bar()))
    again.run.update({"training": {"epochs": 3, "batch_size": 64}, "split": {"train_end": len(EVENTS)}})
    again.fit()
    assert len(again.run.manifest["epochs"]) == 3


def test_a_pool_of_masks_that_grew_resumes_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.model.kernels.dropout._POOL", 500)
    whole = trainer(tmp_path / "whole", [0.5, 0.4, 0.3])
    whole.fit()
    first = trainer(tmp_path / "cut", [0.5, 0.4, 0.3], KillAfter(9))
    with pytest.raises(KilledError):
        first.fit()
    second = trainer(tmp_path / "cut", [0.4, 0.3])
    second.fit()
    assert same(whole.model.weights(), second.model.weights())


def test_bfloat16_trains(tmp_path: Path) -> None:
    made = trainer(tmp_path, [0.5], epochs=1, precision="bfloat16")
    made.fit()
    assert made.model.state()["user_cache"].dtype == torch.float32


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return all(torch.equal(tensor, two[name]) for name, tensor in one.items())


class TestRunDirectory:
    def test_a_second_run_is_refused(self, tmp_path: Path) -> None:
        RunDirectory.create(tmp_path, {})
        with pytest.raises(CheckpointError, match="--resume"):
            RunDirectory.create(tmp_path, {})

    def test_damage_is_noticed(self, tmp_path: Path) -> None:
        run = RunDirectory.create(tmp_path, {})
        run.commit("best", "best-1", {"weights": {"a": torch.ones(3)}}, {})
        file = tmp_path / "best-1" / "weights.safetensors"
        file.write_bytes(file.read_bytes()[:-1] + b"\x01")
        with pytest.raises(CheckpointError, match="damaged"):
            RunDirectory.open(tmp_path).read("best", "weights")
        file.unlink()
        with pytest.raises(CheckpointError, match="missing"):
            RunDirectory.open(tmp_path).read("best", "weights")

    def test_a_newer_or_broken_manifest_is_refused(self, tmp_path: Path) -> None:
        RunDirectory.create(tmp_path, {}).update({"format": 99})
        with pytest.raises(CheckpointError, match="newer felrec"):
            RunDirectory.open(tmp_path)
        (tmp_path / "manifest.json").write_text("{")
        with pytest.raises(CheckpointError, match="cannot be read"):
            RunDirectory.open(tmp_path)
        with pytest.raises(CheckpointError, match="is not a run directory"):
            RunDirectory.open(tmp_path / "nowhere")

    def test_a_commit_that_dies_halfway_leaves_the_old_checkpoint(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = RunDirectory.create(tmp_path, {})
        run.commit("best", "best-0001", {"weights": {"a": torch.ones(3)}}, {})

        def dies(*_: Any) -> None:
            raise KilledError

        monkeypatch.setattr(RunDirectory, "update", dies)
        for name in ("best-0002", "best-0001"):  # a new name, and the name of the one that counts
            with pytest.raises(KilledError):
                run.commit("best", name, {"weights": {"a": torch.zeros(3)}}, {})
        monkeypatch.undo()
        again = RunDirectory.open(tmp_path)
        assert again.read("best", "weights")["a"].tolist() == [1, 1, 1]
        with again.alone():
            assert sorted(p.name for p in tmp_path.glob("[!.]*")) == ["best-0001", "manifest.json"]
        again.commit("best", "best-0002", {"weights": {"a": torch.zeros(3)}}, {})
        assert RunDirectory.open(tmp_path).read("best", "weights")["a"].tolist() == [0, 0, 0]


def test_an_epoch_that_is_only_as_good_is_not_the_best(tmp_path: Path) -> None:
    """Else a plateau would never run out of patience."""
    made = trainer(tmp_path, [0.5, 0.5, 0.5, 0.5], epochs=4, patience=2, checkpoint_seconds=1e6)
    made.fit()
    assert made.run.manifest["best"]["epoch"] == 1
    assert len(made.run.manifest["epochs"]) == 3


def test_a_validation_within_an_epoch_that_comes_again_is_noted_once(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 2, "validate_every": 2, "checkpoint_seconds": 1e6}
    with pytest.raises(KilledError):
        trainer(tmp_path, [0.5] * 99, KillAfter(5), **settings).fit()
    again = trainer(tmp_path, [0.5] * 99, **settings)
    again.fit()
    noted = [(entry["epoch"], entry["step"]) for entry in again.run.manifest["within_epochs"]]
    assert noted == [(1, 2), (1, 4), (2, 2), (2, 4)]


def test_the_loss_of_an_epoch_is_the_mean_over_its_events(tmp_path: Path) -> None:
    class Notes(KillAfter):
        def step(self, **told: Any) -> None:
            steps.append((told["events"], told["loss"]))

    steps: list[tuple[int, float]] = []
    made = trainer(tmp_path, [0.5], Notes(0), epochs=1, checkpoint_seconds=1e6)
    made.fit()
    expected = sum(events * loss for events, loss in steps) / len(EVENTS)
    assert made.run.manifest["epochs"][0]["loss"] == pytest.approx(expected)


def test_no_gradient_is_larger_than_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(tmp_path, [0.5], epochs=1, clip=1e-3, checkpoint_seconds=1e6)
    largest, step = [], made.optimiser.step

    def noted() -> None:
        largest.append(max(float(p.grad.abs().max()) for p in made.model.parameters() if p.grad is not None))
        step()

    monkeypatch.setattr(made.optimiser, "step", noted)
    made.fit()
    assert max(largest) == pytest.approx(1e-3)
