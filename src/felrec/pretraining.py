"""Pretraining: train weights for other logs on several logs together, and save them without these logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from felrec.data.split import Split
from felrec.errors import ConfigError
from felrec.evaluation.report import ExcludeSeen, evaluate, resolve_exclude_seen
from felrec.fitted import FittedModel
from felrec.model.felrec_s import FELRecS
from felrec.model.felrec_s_settings import DEFAULT_SIGNALS
from felrec.pretrained import check_name, load_weights, save_weights
from felrec.recommender import Trainable
from felrec.registry import model_kind
from felrec.training.checkpoint import RunDirectory
from felrec.training.multi_log import MultiLogLearner
from felrec.training.trainer import Listener, Trainer

MODEL = "felrec-s"
# Settings that improve results on logs outside the training data
_DEFAULTS: dict[str, Any] = {
    "signals": [*DEFAULT_SIGNALS, "hit-rates"],
    "members": 4,
    "trained_share": 1.0,
    "new_item_weight": 2.0,
    "new_item_lift": 3.5,
}
_VALIDATED = 5_000  # events per log, enough to compare epochs


def pretrain(
    splits: Sequence[Split],
    out: Path,
    settings: dict[str, Any] | None = None,
    *,
    resume: bool = False,
    listeners: tuple[Listener, ...] = (),
) -> FittedModel:
    """Train on all logs together, with checkpoints in the directory `out`, and write the weights there."""
    if not splits:
        raise ConfigError("no training data; give logs, or --synthetic 8")
    check_name(out)
    kind = model_kind(MODEL)
    own, training = kind.divide(_DEFAULTS | kind.with_recipe(settings or {}))
    if "sequence" in own.model_dump()["signals"]:
        raise ConfigError(
            "signals: what sequence learns belongs to the vectors of one log; leave it out of a pretraining"
        )
    first = kind.build(own, training.seed, "cpu", splits[0].sizes)
    assert isinstance(first, FELRecS)
    models: list[Trainable] = [first, *(first.twin() for _ in splits[1:])]
    begun = {
        "model": MODEL,
        "settings": own.model_dump(),
        "training": training.model_dump(),
        "logs": [split.fingerprint for split in splits],
        "split": {"train_end": sum(split.train_end for split in splits)},
    }
    run = _open_run(out, begun, resume)
    with run.alone():
        if not run.manifest["finished"]:
            validate = _validation(models, splits, training.exclude_seen)
            trainer = Trainer(
                MultiLogLearner(models), [split.train for split in splits], training, run, validate, listeners
            )
            trainer.resume()
            trainer.fit()
        save_weights(out, MODEL, own.model_dump(), run.read("best", "weights"))
    return load_weights(out)


def _open_run(path: Path, begun: dict[str, Any], resume: bool) -> RunDirectory:
    if not (resume and (path / "manifest.json").exists()):
        return RunDirectory.create(path, {**begun, "finished": False})
    run = RunDirectory.open(path)
    for name, value in begun.items():
        if run.manifest.get(name) != value:
            raise ConfigError(f"{path} was started with other {name}; resume it with those or choose another --out")
    return run


def _validation(
    models: Sequence[Trainable], splits: Sequence[Split], exclude_seen: ExcludeSeen
) -> Callable[[], dict[str, float]]:
    """Validation metrics averaged over the logs, so that long and short logs have equal weight."""
    shortened = [_first_of_validation(split) for split in splits]
    leave_out: list[ExcludeSeen] = ["yes" if resolve_exclude_seen(exclude_seen, split) else "no" for split in splits]

    def validate() -> dict[str, float]:
        reports = [
            evaluate(model, split, model=MODEL, part="validation", exclude_seen=seen)
            for model, split, seen in zip(models, shortened, leave_out, strict=True)
        ]
        return {key: float(np.mean([report.metric(key) for report in reports])) for key in ("rank", "hr@10", "mrr")}

    return validate


def _first_of_validation(split: Split) -> Split:
    stop = min(split.validation_end, split.train_end + _VALIDATED)
    return Split(split.log.part(0, stop), split.train_end, stop)
