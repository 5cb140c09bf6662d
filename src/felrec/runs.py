"""Fit a model in memory, train it into a run directory, load it, evaluate it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, get_args

import torch

from felrec.data.known import Known
from felrec.data.log import InteractionLog
from felrec.data.split import Sizes, Split
from felrec.data.tags import read_tags
from felrec.errors import CheckpointError, ConfigError
from felrec.evaluation.metrics import read_cutoffs
from felrec.evaluation.protocols import Progress
from felrec.evaluation.report import CacheStart, ExcludeSeen, Report
from felrec.evaluation.report import evaluate as evaluate_recommender
from felrec.evaluation.rules import Protocol
from felrec.fitted import FittedModel
from felrec.fitting import Job, as_split, fingerprint, fitted_model
from felrec.pretrained import check_name, load_weights, weights_folder
from felrec.registry import model_kind
from felrec.training.checkpoint import MANIFEST, RunDirectory
from felrec.training.device import pick_device
from felrec.training.distributed import SharedCheckpoints, joined
from felrec.training.sink import MemoryCheckpoints
from felrec.training.trainer import Listener


def fit(data: Split | InteractionLog, model: str = "felrec-s", *, device: str = "cpu", **settings: Any) -> FittedModel:
    """Train a model in memory: `fit(split, epochs=2)`. Nothing is written to disk."""
    job = Job.of(data, model, settings, device)
    if job.training.tensorboard:
        raise ConfigError("tensorboard=true writes into a run directory; use felrec.train, which creates one")
    return job.fit(job.build(), MemoryCheckpoints(job.manifest()), Known.of(job.split))


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
    """Train a model by name into the directory `out` and return it in its state after validation.

    Processes that torchrun starts train together. The first one writes the directory; listeners hear of every process's
    steps.
    """
    out, given = Path(out), settings or {}
    check_name(out)
    with joined() as peers:
        job = Job.of(data, model, given, device, peers)
        if not peers.leads:
            return _follow(job, out, listeners)
        begun = _reopen(out, job, given) if resume and (out / MANIFEST).exists() else None
        if begun:
            job = job.as_begun(begun.manifest)
        recommender = job.build()
        with _tensorboard(job.training.tensorboard, out) as scalars:  # may fail, so before the run is created
            run = begun or RunDirectory.create(out, job.manifest())
            with run.alone():
                checkpoints = SharedCheckpoints.led(peers, run)
                if run.manifest["finished"]:
                    return load(out, device=device)
                known = Known.of(job.split)
                known.save(out)
                return job.fit(recommender, checkpoints, known, (*listeners, *scalars), progress)


def _follow(job: Job, out: Path, listeners: tuple[Listener, ...]) -> FittedModel:
    """Train along with the process that writes the run."""
    checkpoints = SharedCheckpoints.followed(job.peers)
    if checkpoints.manifest["finished"]:
        return load(out, device=job.device)
    job = job.as_begun(checkpoints.manifest)
    return job.fit(job.build(), checkpoints, Known.of(job.split), listeners)


def load(path: Path | str, *, device: str = "cpu", settings: dict[str, Any] | None = None) -> FittedModel:
    """Load the best checkpoint of a run, in the state after validation, or weights without a log, e.g. `pretrained`.

    `settings` override scoring settings.
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
    manifest = {**run.manifest, "settings": chosen.model_dump()}
    return fitted_model(recommender, manifest, Known.load(run.path), after_validation)


def evaluate(
    model: FittedModel,
    data: Split | InteractionLog,
    *,
    protocol: Protocol = "online",
    cache: CacheStart | None = None,
    exclude_seen: ExcludeSeen = "auto",
    block: int | None = None,
    seed: int = 0,
    k: Sequence[int] = (),
    tags: Any = None,
    progress: Progress | None = None,
) -> Report:
    """Evaluate on the test part of a log, without changing the model.

    The default of `cache` is given by `cache_start`. `block` is the number of events that are scored before they are
    observed, 256 by default for protocol `online`. With lengths `k`, such as (5, 10, 50), the report has metrics of
    lists; `tags` (a file, a frame, or a dictionary of items and their tags) add the diversity of the lists.
    """
    if k:
        k = read_cutoffs(",".join(map(str, k)))
    for what, value, known in (
        ("protocol", protocol, get_args(Protocol)),
        ("cache", cache, (None, *get_args(CacheStart))),
        ("exclude_seen", exclude_seen, get_args(ExcludeSeen)),
    ):
        if value not in known:
            raise ConfigError(f"{what}={value!r}: choose one of {', '.join(str(one) for one in known if one)}")
    split = as_split(data)
    cache = cache_start(model, split, cache)
    if split.fingerprint != model.fingerprint and model_kind(model.name).one_log:
        raise CheckpointError(
            f"{model.name} learns one vector per item of its own log, so it cannot be used on another log or split;"
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
            block=block,
            seed=seed,
            k=k,
            tags=None if tags is None else read_tags(tags),
            progress=progress,
        )
    finally:
        model.recommender.load_state(before)


def cache_start(model: FittedModel, split: Split, wanted: CacheStart | None = None) -> CacheStart:
    """The initial cache of an evaluation: by default `kept` on the training log, `reset` on any other."""
    same_log = split.fingerprint == model.fingerprint
    if wanted == "kept" and not same_log:
        raise CheckpointError(
            "the model was trained on another log or split, so its cache does not fit this one; use --cache reset"
        )
    return wanted or ("kept" if same_log else "reset")


def _open_run(path: Path) -> RunDirectory:
    """Open a run that was trained on one log."""
    run = RunDirectory.open(path)
    if "log" not in run.manifest:
        raise CheckpointError(f"{path} is an unfinished pretraining; continue it with felrec pretrain --resume")
    return run


def _reopen(out: Path, job: Job, given: dict[str, Any]) -> RunDirectory:
    """Open a run to resume; raises an error if its model, log or settings differ."""
    run, name = _open_run(out), job.kind.name
    begun_on = run.manifest["device"]
    if run.manifest["model"] != name:
        raise CheckpointError(f"{out} is a run of {run.manifest['model']}, not of {name}; choose another --out")
    if begun_on != torch.device(job.device).type:
        raise CheckpointError(f"{out} was started on {begun_on}; resume it with --device {begun_on}")
    if fingerprint(run.manifest) != job.split.fingerprint:
        raise CheckpointError(f"{out} was started on another log; resume it with that log or choose another --out")
    asked = {**job.settings.model_dump(), **job.training.model_dump()}
    as_begun = job.as_begun(run.manifest)
    begun = {**as_begun.settings.model_dump(), **as_begun.training.model_dump()}
    for setting in given:
        if asked[setting] != begun[setting]:
            raise ConfigError(f"{out} was started with {setting}={begun[setting]}; resume it without changing that")
    return run


@contextmanager
def _tensorboard(wanted: bool, out: Path) -> Iterator[tuple[Listener, ...]]:
    """The listener that writes for TensorBoard, if wanted."""
    if not wanted:
        yield ()
        return
    from felrec.training.tensorboard import TensorBoard

    with closing(TensorBoard(out / "tensorboard")) as listener:
        yield (listener,)
