"""Fit a model to a log: train it by gradient descent, or choose its settings and apply the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from felrec.abilities import Choosable
from felrec.config import Settings, TrainingSettings, check
from felrec.data.known import Known
from felrec.data.log import InteractionLog
from felrec.data.seen import SeenPairs
from felrec.data.split import Split, split_log
from felrec.evaluation.protocols import Progress, replay
from felrec.evaluation.report import ExcludeSeen, evaluate, resolve_exclude_seen
from felrec.fitted import FittedModel
from felrec.model_kind import ModelKind
from felrec.peers import ALONE, Peers
from felrec.recommender import Recommender, Tensors, Trainable, usable
from felrec.registry import model_kind
from felrec.training.device import pick_device
from felrec.training.distributed import alike, check_agreement, check_divisible, own_device, together
from felrec.training.sink import CheckpointSink
from felrec.training.trainer import Listener, Trainer
from felrec.version import __version__


@dataclass(frozen=True)
class Job:
    """A model to fit, the log, the settings of both model and training, and the processes that train it."""

    kind: ModelKind
    split: Split
    settings: Settings
    training: TrainingSettings
    device: str
    peers: Peers = ALONE

    @classmethod
    def of(
        cls, data: Split | InteractionLog, model: str, given: dict[str, Any], device: str, peers: Peers = ALONE
    ) -> Job:
        """Build from a user's arguments; names and settings are checked."""
        split, kind, device = as_split(data), model_kind(model), own_device(pick_device(device))
        job = cls(kind, split, *kind.divide(given), device, peers)
        check_agreement(peers, job.manifest())
        return job

    def as_begun(self, manifest: dict[str, Any]) -> Job:
        """The same job with the settings of an existing run."""
        settings = check(self.kind.settings, manifest["settings"])
        return replace(self, settings=settings, training=check(TrainingSettings, manifest["training"]))

    def manifest(self) -> dict[str, Any]:
        """The manifest before training, from which a killed run can be resumed."""
        log = self.split.log
        return {
            "felrec": __version__,
            "model": self.kind.name,
            "settings": self.settings.model_dump(),
            "training": self.training.model_dump(),
            "device": torch.device(self.device).type,
            "log": {
                "fingerprint": log.fingerprint,
                "events": len(log),
                "sizes": asdict(self.split.sizes),
                "validation_ends": float(log.times[self.split.validation_end - 1]),
            },
            "split": {"train_end": self.split.train_end, "validation_end": self.split.validation_end},
            "exclude_seen": resolve_exclude_seen(self.training.exclude_seen, self.split),
            "finished": False,
        }

    def build(self) -> Recommender:
        """Create the untrained model."""
        recommender = self.kind.build(self.settings, self.training.seed, self.device, self.split.sizes)
        check_divisible(self.peers, recommender, self.kind.name, self.training.batch_size)
        return recommender

    def fit(
        self,
        recommender: Recommender,
        run: CheckpointSink,
        known: Known,
        listeners: tuple[Listener, ...] = (),
        progress: Progress | None = None,
    ) -> FittedModel:
        """Fit a model from `build`, with checkpoints in `run`; returns the best one, in its state after validation."""
        if isinstance(recommender, Trainable):
            after_validation = self._train(recommender, run, listeners)
        else:
            recommender, after_validation = self._fill(recommender, run, progress)
        return fitted_model(recommender, run.manifest, known, after_validation)

    def _train(self, recommender: Trainable, run: CheckpointSink, listeners: tuple[Listener, ...]) -> Tensors:
        validate = alike(self.peers, recommender, self._validation(recommender))
        events = usable(recommender, self.split.train)
        trainer = Trainer(recommender, events, self.training, run, validate, listeners)
        trainer.resume()
        with together(self.peers, recommender):
            trainer.fit()
        recommender.load_weights(run.read("best", "weights"))
        after_validation = run.read("best", "state_validation")
        recommender.load_state(after_validation)
        return after_validation

    def _fill(
        self, recommender: Recommender, run: CheckpointSink, progress: Progress | None
    ) -> tuple[Recommender, Tensors]:
        """Fit a model without gradients: choose open settings on validation, then apply the log."""
        chosen, recommender = self._choose(recommender, progress)
        recommender.reset()
        replay(recommender, self.split.train, progress)
        after_train = recommender.state()
        metrics = self._validation(recommender)()
        after_validation = recommender.state()
        files = {"weights": recommender.weights(), "state_train": after_train, "state_validation": after_validation}
        run.manifest |= {"settings": {**run.manifest["settings"], **chosen}, "finished": True}
        run.commit("best", "best", files, {"epoch": 0, "metrics": metrics})
        return recommender, after_validation

    def _choose(self, recommender: Recommender, progress: Progress | None) -> tuple[dict[str, Any], Recommender]:
        """The settings with the best hr@10 on validation, unless given."""
        best: tuple[float, dict[str, Any], Recommender] = -1.0, {}, recommender
        if isinstance(recommender, Choosable) and None in self.settings.model_dump().values():
            for chosen, candidate in recommender.choices():
                replay(candidate, self.split.train, progress)
                hits = self._validation(candidate)()["hr@10"]
                if hits > best[0]:
                    best = hits, chosen, candidate
        return best[1:]

    def _validation(self, recommender: Recommender) -> Callable[[], dict[str, float]]:
        """Validation with protocol `online`, from the state after training."""
        leave_out: ExcludeSeen = "yes" if resolve_exclude_seen(self.training.exclude_seen, self.split) else "no"

        def validate() -> dict[str, float]:
            report = evaluate(recommender, self.split, model=self.kind.name, exclude_seen=leave_out, part="validation")
            return {key: report.metric(key) for key in ("rank", "hr@10", "mrr")}

        return validate


def as_split(data: Split | InteractionLog) -> Split:
    """Split a log with the default shares, unless it is already split."""
    return data if isinstance(data, Split) else split_log(data)


def fitted_model(
    recommender: Recommender, manifest: dict[str, Any], known: Known, after_validation: Tensors
) -> FittedModel:
    """A recommender in its state after validation, with its vocabularies and the data of its manifest."""
    return FittedModel(
        name=manifest["model"],
        recommender=recommender,
        user_ids=known.user_ids,
        item_ids=known.item_ids,
        seen=SeenPairs.of_records(known.pairs),
        exclude_seen=manifest["exclude_seen"],
        after_validation=after_validation,
        fingerprint=fingerprint(manifest),
        settings=manifest["settings"],
        clock=manifest["log"]["validation_ends"],
        pairs=known.pairs,
        manifest=manifest,
    )


def fingerprint(manifest: dict[str, Any]) -> str:
    """Like `Split.fingerprint`, for the log and split that a run was trained on."""
    cut = manifest["split"]
    return f"{manifest['log']['fingerprint']}:{cut['train_end']}:{cut['validation_end']}"
