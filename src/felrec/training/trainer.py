"""The training loop: learning-rate schedule, validation after each epoch, and checkpoints that resume exactly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, Protocol

import torch

from felrec.config import TrainingSettings
from felrec.data.batches import Batch, Batches
from felrec.data.events import Events
from felrec.errors import ConfigError, TrainingError
from felrec.recommender import Learner, Tensors
from felrec.training.optimiser import build_optimiser, load_optimiser_state, optimiser_state
from felrec.training.schedule import learning_rate
from felrec.training.sink import CheckpointSink

Validate = Callable[[], dict[str, float]]
"""Evaluates the model on the validation part; the model keeps the state after it."""


class StopTraining(KeyboardInterrupt):
    """Raised by a listener after a step to end the training there: what there is is written first."""


class Listener(Protocol):
    """Receives training progress, e.g. a progress bar, a log or TensorBoard."""

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Called after each of the `steps` of an epoch; `events` is the size of its batch."""
        ...

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Called after each validation."""
        ...


class Trainer:
    """Trains a model on the events of a log, or of several, and keeps the best checkpoint."""

    def __init__(
        self,
        model: Learner,
        events: Events | Sequence[Events],
        settings: TrainingSettings,
        run: CheckpointSink,
        validate: Validate,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        self.model, self.events, self.settings, self.run = model, events, settings, run
        self.validate, self.listeners = validate, listeners
        self.optimiser = build_optimiser(model.parameters(), settings)
        self.epoch, self.step = 0, 0
        self.steps = 0  # of the current epoch
        self.loss_sum, self.learned = 0.0, 0  # of the current epoch: sum of loss times events, and number of events
        self._saved_at = time.monotonic()

    def resume(self) -> None:
        """Continue from the newest resume checkpoint; without one, training starts at the beginning."""
        entry = self.run.manifest.get("resume")
        if entry is None:
            return
        self.model.load_weights(self.run.read("resume", "weights"))
        self.model.load_state(self.run.read("resume", "state"))
        self.model.load_memory(self.run.read("resume", "memory"))
        load_optimiser_state(self.optimiser, self.run.read("resume", "optimiser"))
        self.epoch, self.step = entry["epoch"], entry["step"]
        self.loss_sum, self.learned = entry["loss_sum"], entry["learned"]

    def fit(self) -> None:
        """Train for all epochs, or until `patience` epochs bring no improvement."""
        self.model.train()
        while self.epoch < self.settings.epochs and not self._out_of_patience():
            self._train_epoch()
            self._end_epoch()
        self.optimiser.zero_grad(set_to_none=True)  # free the gradients: the trained model needs none
        self.run.update({"finished": True})
        self.run.discard("resume")

    def _train_epoch(self) -> None:
        batches: Batches[Batch] = self.model.batches(self.events, self.settings, self.epoch)
        self.steps = len(batches)
        if self.step == 0:
            self.model.begin_epoch()
            self.loss_sum, self.learned = 0.0, 0
        while self.step < self.steps:
            try:
                self._train_step(batches[self.step])
            except StopTraining:
                if self.run.resumable:
                    self._save_resume()
                raise
            every = self.settings.validate_every
            if every and self.step % every == 0 and self.step < self.steps:
                self._validate_within_epoch()
            if self.run.resumable and time.monotonic() - self._saved_at >= self.settings.checkpoint_seconds:
                self._save_resume()

    def _train_step(self, batch: Batch) -> None:
        rate = learning_rate(self.settings, self.epoch, self.step, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        with self._autocast():
            loss = self.model.loss(batch)
        value = loss.item()
        if not math.isfinite(value):
            self._stop(f"the loss became {value}")
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_value_(self.model.parameters(), self.settings.clip)
        self.optimiser.step()
        self.loss_sum += value * len(batch)
        self.learned += len(batch)
        self.step += 1
        for listener in self.listeners:
            listener.step(epoch=self.epoch, step=self.step, steps=self.steps, events=len(batch), loss=value, lr=rate)

    def _end_epoch(self) -> None:
        self._require_finite()
        metrics, state_after_train, state_after_validation = self._validate()
        record = {"epoch": self.epoch + 1, "loss": self.loss_sum / max(1, self.learned), **metrics}
        best = self.run.manifest.get("best")
        is_best = best is None or metrics["rank"] < best["metrics"]["rank"]
        if is_best:
            files = {
                "weights": self.model.weights(),
                "state_train": state_after_train,
                "state_validation": state_after_validation,
            }
            notes = {"epoch": self.epoch + 1, "metrics": metrics}
            self.run.commit("best", f"best-{self.epoch + 1:04d}", files, notes)
        self.run.manifest["epochs"] = [*self.run.manifest.get("epochs", []), record]
        finished = self.epoch, self.step
        self.epoch, self.step = self.epoch + 1, 0
        if self.run.resumable:
            self._save_resume()
        self._tell_validated(*finished, metrics, is_best)

    def _validate(self) -> tuple[dict[str, float], Tensors, Tensors]:
        """Validation metrics, and the state before and after validation; the model is left in the state before."""
        before = self.model.state()
        self.model.train(False)
        try:
            metrics = self.validate()
            return metrics, before, self.model.state()
        finally:
            self.model.train()
            self.model.load_state(before)

    def _validate_within_epoch(self) -> None:
        """For monitoring only: the state lacks the rest of the training part, so this never makes a best checkpoint."""
        metrics, _, _ = self._validate()
        at = (self.epoch + 1, self.step)
        entry = {"epoch": at[0], "step": at[1], **metrics}
        earlier = self.run.manifest.get("within_epochs", [])  # a resumed run repeats some steps
        self.run.update({"within_epochs": [*(e for e in earlier if (e["epoch"], e["step"]) < at), entry]})
        self._tell_validated(self.epoch, self.step, metrics, best=False)

    def _save_resume(self) -> None:
        self._require_finite()
        files = {
            "weights": self.model.weights(),
            "state": self.model.state(),
            "memory": self.model.memory(),
            "optimiser": optimiser_state(self.optimiser),
        }
        notes = {"epoch": self.epoch, "step": self.step, "loss_sum": self.loss_sum, "learned": self.learned}
        self.run.commit("resume", f"resume-{self.epoch:04d}-{self.step:07d}", files, notes)
        self._saved_at = time.monotonic()

    def _require_finite(self) -> None:
        if not all(bool(parameter.isfinite().all()) for parameter in self.model.parameters()):
            self._stop("the weights are no longer finite")

    def _stop(self, what: str) -> NoReturn:
        best = self.run.manifest.get("best")
        kept = f"the best checkpoint (epoch {best['epoch']}) is kept" if best else "no epoch was finished"
        raise TrainingError(
            f"{what} in epoch {self.epoch + 1}, step {self.step + 1}; {kept}; "
            f"try a smaller lr (it was {self.settings.lr}) or more warmup in a new --out"
        )

    def _out_of_patience(self) -> bool:
        best = self.run.manifest.get("best")
        return bool(self.settings.patience and best and self.epoch - best["epoch"] >= self.settings.patience)

    def _tell_validated(self, epoch: int, step: int, metrics: dict[str, float], best: bool) -> None:
        for listener in self.listeners:
            listener.validated(epoch=epoch, step=step, steps=self.steps, metrics=metrics, best=best)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.settings.precision == "float32":
            return nullcontext()
        device = next(iter(self.model.parameters())).device.type
        if device == "cuda" and not torch.cuda.is_bf16_supported():
            raise ConfigError("this device does not support bfloat16; use precision=float32")
        return torch.autocast(device, dtype=torch.bfloat16)
