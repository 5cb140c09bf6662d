"""The work itself: train a model into a run directory, load it, evaluate it, compare several."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import torch

from felrec.config import Settings, TrainingSettings, check
from felrec.data.log import InteractionLog
from felrec.data.seen import PAIR, PairRecords, SeenPairs, pair_records
from felrec.data.split import Sizes, Split, split_log
from felrec.data.vocabulary import Vocabulary
from felrec.errors import CheckpointError, ConfigError
from felrec.evaluation.protocols import Progress, Protocol, replay
from felrec.evaluation.report import CacheStart, ExcludeSeen, Report, resolve_exclude_seen
from felrec.evaluation.report import evaluate as evaluate_recommender
from felrec.fitted import FittedModel
from felrec.model_kind import ModelKind
from felrec.pretrained import check_name, load_weights, weights_folder
from felrec.recommender import Choosable, Recommender, Trainable
from felrec.registry import model_kind
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Listener, Trainer
from felrec.version import __version__


def fit(data: Split | InteractionLog, model: str = "felrec-s", *, device: str = "cpu", **settings: Any) -> FittedModel:
    """Train a model and keep only the result: `fit(split, epochs=2)`."""
    with tempfile.TemporaryDirectory(prefix="felrec-") as folder:
        return train(data, model, Path(folder) / "run", settings, device=device)


def train(
    data: Split | InteractionLog,
    model: str,
    out: Path | str,
    settings: dict[str, Any] | None = None,
    *,
    device: str = "cpu",
    resume: bool = False,
    listeners: tuple[Listener, ...] = (),
    progress: Progress | None = None,
) -> FittedModel:
    """Train a model by name into the directory `out` and return it in its state after validation."""
    out = Path(out)
    check_name(out)
    split = _as_split(data)
    kind, device = model_kind(model), pick_device(device)  # what cannot work must not leave a begun run behind
    own, training = kind.divide(settings or {})
    if training.tensorboard:
        from felrec.training.tensorboard import require_tensorboard

        require_tensorboard()
    recommender = kind.build(own, training.seed, device, split.sizes)
    if resume and (out / "manifest.json").exists():
        run = _reopen(out, kind, split, settings or {}, device)
        training = check(TrainingSettings, run.manifest["training"])
        recommender = kind.build(check(kind.settings, run.manifest["settings"]), training.seed, device, split.sizes)
    else:
        run = _begin(out, kind, split, own, training, device)
    with run.alone():
        if run.manifest["finished"]:
            return load(out, device=device)
        if isinstance(recommender, Trainable):
            validate = _validation(recommender, split, kind.name, training)
            with _tensorboard(training, run) as scalars:
                trainer = Trainer(recommender, split.train, training, run, validate, (*listeners, *scalars))
                trainer.resume()
                trainer.fit()
        else:
            _fill(recommender, kind, split, run, training, progress)
    return load(out, device=device)


def load(path: Path | str, *, device: str = "cpu", settings: dict[str, Any] | None = None) -> FittedModel:
    """The best checkpoint of a run, in the state after validation; or weights without a log, such as `pretrained`.

    `settings` override those of scoring.
    """
    if weights := weights_folder(path):
        return load_weights(weights, device=pick_device(device), settings=settings)
    run = _open_run(Path(path))
    kind = model_kind(run.manifest["model"])
    chosen = kind.rescored(run.manifest["settings"], settings)
    seed, sizes = run.manifest["training"]["seed"], Sizes(**run.manifest["log"]["sizes"])
    recommender = kind.build(chosen, seed, pick_device(device), sizes)
    recommender.load_weights(run.read("best", "weights"))
    after_validation = run.read("best", "state_validation")
    recommender.load_state(after_validation)
    pairs = _read_pairs(run.path / "seen.parquet")
    return FittedModel(
        name=kind.name,
        recommender=recommender,
        user_ids=Vocabulary.load(run.path / "users.parquet"),
        item_ids=Vocabulary.load(run.path / "items.parquet"),
        seen=SeenPairs.of_records(pairs),
        exclude_seen=run.manifest["exclude_seen"],
        after_validation=after_validation,
        fingerprint=_fingerprint(run),
        settings=run.manifest["settings"],
        clock=run.manifest["log"]["validation_ends"],
        pairs=pairs,
    )


def evaluate(
    model: FittedModel,
    data: Split | InteractionLog,
    *,
    protocol: Protocol = "online",
    cache: CacheStart | None = None,
    exclude_seen: ExcludeSeen = "auto",
    seed: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Evaluate on the test part of a log and leave the model as it was.

    By default the cache is `kept` on the log that the model was trained on and `reset` on any other.
    """
    for what, value, known in (
        ("protocol", protocol, get_args(Protocol)),
        ("cache", cache, (None, *get_args(CacheStart))),
        ("exclude_seen", exclude_seen, get_args(ExcludeSeen)),
    ):
        if value not in known:
            raise ConfigError(f"{what}={value!r}: choose one of {', '.join(str(one) for one in known if one)}")
    split = _as_split(data)
    same_log = split.fingerprint == model.fingerprint
    cache = cache or ("kept" if same_log else "reset")
    if cache == "kept" and not same_log:
        raise CheckpointError(
            "the model was trained on another log or split, so its cache does not fit this one; use --cache reset"
        )
    if not same_log and model_kind(model.name).one_log:
        raise CheckpointError(
            f"{model.name} learned one vector for each item of its own log, which says nothing of another log or split;"
            " evaluate it on the log it was trained on, or train it on this one"
        )
    before = model.recommender.state()
    if cache == "kept":
        model.recommender.load_state(model.after_validation)
    try:
        return evaluate_recommender(
            model.recommender,
            split,
            model=model.name,
            protocol=protocol,
            cache=cache,
            exclude_seen=exclude_seen,
            seed=seed,
            progress=progress,
        )
    finally:
        model.recommender.load_state(before)


def _as_split(data: Split | InteractionLog) -> Split:
    return data if isinstance(data, Split) else split_log(data)


def pick_device(wanted: str) -> str:
    """A device by name; `auto` takes CUDA where there is one."""
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        return "cuda" if devices else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", wanted):
        raise ConfigError(f"--device {wanted}: choose cpu, cuda, cuda:N or auto")
    if wanted != "cpu" and int(wanted.partition(":")[2] or 0) >= devices:
        raise ConfigError(f"--device {wanted}: this machine has no such CUDA device; use --device cpu")
    return wanted


def _open_run(path: Path) -> RunDirectory:
    """A run of one log."""
    run = RunDirectory.open(path)
    if "log" not in run.manifest:
        raise CheckpointError(f"{path} is a pretraining that was not finished; go on with felrec pretrain --resume")
    return run


def _fingerprint(run: RunDirectory) -> str:
    """As `Split.fingerprint`: of the log and the split that a run was trained on."""
    cut = run.manifest["split"]
    return f"{run.manifest['log']['fingerprint']}:{cut['train_end']}:{cut['validation_end']}"


def _begin(
    out: Path, kind: ModelKind, split: Split, settings: Settings, training: TrainingSettings, device: str
) -> RunDirectory:
    """A new run: all that is known before training, so that a killed run can be resumed from its directory."""
    log, known = split.log, split.log.events[: split.validation_end]
    manifest = {
        "felrec": __version__,
        "model": kind.name,
        "settings": settings.model_dump(),
        "training": training.model_dump(),
        "device": torch.device(device).type,
        "log": {
            "fingerprint": log.fingerprint,
            "events": len(log),
            "sizes": asdict(split.sizes),
            "validation_ends": float(known.times[-1]),
        },
        "split": {"train_end": split.train_end, "validation_end": split.validation_end},
        "exclude_seen": resolve_exclude_seen(training.exclude_seen, split),
        "finished": False,
    }
    run = RunDirectory.create(out, manifest)
    _write_known(out, split)
    return run


def _write_known(out: Path, split: Split) -> None:
    """Write the ids and pairs that are known after validation."""
    log, known = split.log, split.log.events[: split.validation_end]
    log.user_ids.prefix(int(known.users.max()) + 1).save(out / "users.parquet")
    log.item_ids.prefix(int(known.items.max()) + 1).save(out / "items.parquet")
    records = pair_records(known)
    pl.DataFrame({name: records[name] for name in PAIR.names or ()}).write_parquet(out / "seen.parquet")


def _read_pairs(path: Path) -> PairRecords:
    """What `_write_known` wrote."""
    try:
        frame = pl.read_parquet(path)
        records = np.empty(len(frame), dtype=PAIR)
        for name in PAIR.names or ():
            records[name] = frame[name].to_numpy()
    except (OSError, pl.exceptions.PolarsError):
        raise CheckpointError(f"{path} is missing, damaged or of an older felrec; restore it or train anew") from None
    return records


def _reopen(out: Path, kind: ModelKind, split: Split, given: dict[str, Any], device: str) -> RunDirectory:
    """A run to resume, if model, log and settings are those it was begun with."""
    run = _open_run(out)
    if run.manifest["model"] != kind.name:
        raise CheckpointError(f"{out} is a run of {run.manifest['model']}, not of {kind.name}; choose another --out")
    if run.manifest["device"] != torch.device(device).type:
        raise CheckpointError(
            f"{out} was begun on {run.manifest['device']}; resume it with --device {run.manifest['device']}"
        )
    if _fingerprint(run) != split.fingerprint:
        raise CheckpointError(f"{out} was begun on another log; resume it with that one or choose another --out")
    settings, training = kind.divide(given)
    asked = {**settings.model_dump(), **training.model_dump()}
    begun = {**run.manifest["settings"], **run.manifest["training"]}
    for name in given:
        if asked[name] != begun[name]:
            raise ConfigError(f"{out} was begun with {name}={begun[name]}; resume it without changing that")
    if not run.manifest.get("finished"):
        _write_known(out, split)  # a run that was killed at its very beginning may lack them
    return run


@contextmanager
def _tensorboard(training: TrainingSettings, run: RunDirectory) -> Iterator[tuple[Listener, ...]]:
    """Give the listener that writes for TensorBoard, if that is wanted."""
    if not training.tensorboard:
        yield ()
        return
    from felrec.training.tensorboard import TensorBoard

    with closing(TensorBoard(run.path / "tensorboard")) as listener:
        yield (listener,)


def _validation(
    recommender: Recommender, split: Split, name: str, training: TrainingSettings
) -> Callable[[], dict[str, float]]:
    """The callable by which the trainer validates: `online`, from the state that training left."""
    leave_out: ExcludeSeen = "yes" if resolve_exclude_seen(training.exclude_seen, split) else "no"

    def validate() -> dict[str, float]:
        report = evaluate_recommender(recommender, split, model=name, exclude_seen=leave_out, part="validation")
        return {key: report.metric(key) for key in ("rank", "hr@10", "mrr")}

    return validate


def _fill(
    recommender: Recommender,
    kind: ModelKind,
    split: Split,
    run: RunDirectory,
    training: TrainingSettings,
    progress: Progress | None,
) -> None:
    """Models without gradients only take the log in, after a setting was chosen on validation where there is one."""
    chosen, recommender = _choose(recommender, kind, split, run, training, progress)
    recommender.reset()
    replay(recommender, split.train, progress)
    after_train = recommender.state()
    metrics = _validation(recommender, split, kind.name, training)()
    files = {
        "weights": recommender.weights(),
        "state_train": after_train,
        "state_validation": recommender.state(),
    }
    run.manifest |= {"settings": {**run.manifest["settings"], **chosen}, "finished": True}
    run.commit("best", "best", files, {"epoch": 0, "metrics": metrics})


def _choose(
    recommender: Recommender,
    kind: ModelKind,
    split: Split,
    run: RunDirectory,
    training: TrainingSettings,
    progress: Progress | None,
) -> tuple[dict[str, Any], Recommender]:
    """The setting with the best hr@10 on validation, unless it was given."""
    if not isinstance(recommender, Choosable) or None not in run.manifest["settings"].values():
        return {}, recommender
    best: tuple[float, dict[str, Any], Recommender] | None = None
    for chosen, candidate in recommender.choices():
        replay(candidate, split.train, progress)
        hits = _validation(candidate, split, kind.name, training)()["hr@10"]
        if best is None or hits > best[0]:
            best = hits, chosen, candidate
    if best is None:
        return {}, recommender
    return best[1], best[2]
