"""Weights without a log: those that come with felrec, and those that `felrec pretrain` makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_file

from felrec.data.seen import PAIR, SeenPairs
from felrec.data.split import Sizes
from felrec.data.vocabulary import Vocabulary
from felrec.errors import CheckpointError, ConfigError
from felrec.fitted import FittedModel
from felrec.recommender import Tensors
from felrec.registry import model_kind
from felrec.training.checkpoint import write_tensors

PRETRAINED = "pretrained"  # the name of the shipped weights, where a run directory is asked for
_SHIPPED = Path(__file__).parent / "weights"
_WEIGHTS, _MODEL = "weights.safetensors", "model.json"


def load_pretrained() -> FittedModel:
    """The weights that come with felrec. They know no user and no item: `observe` events, or evaluate on a log.

    >>> model = load_pretrained()
    >>> model.observe([("ada", "tea", 0), ("ada", "milk", 60), ("bob", "tea", 120)])
    >>> [item for item, score in model.recommend("bob", k=1, exclude_seen=True)]
    ['milk']
    """
    return load_weights(_SHIPPED)


def check_name(out: Path) -> None:
    """Refuse a directory that could not be told from the shipped weights."""
    if str(out) == PRETRAINED:
        raise ConfigError(f"--out {out}: that is the name of the weights that come with felrec; choose another --out")


def weights_folder(source: Path | str) -> Path | None:
    """The folder of weights that `source` names, if it names one and not a run."""
    folder = _SHIPPED if str(source) == PRETRAINED else Path(source)
    return folder if (folder / _MODEL).exists() else None


def load_weights(folder: Path, *, device: str = "cpu", settings: dict[str, Any] | None = None) -> FittedModel:
    """A model that has learned and has seen nothing."""
    try:
        told = json.loads((folder / _MODEL).read_text())
        weights = load_file(folder / _WEIGHTS)
        kind = model_kind(told["model"])
        kind.rescored(told["settings"], None)
    except (OSError, json.JSONDecodeError, KeyError, SafetensorError, ConfigError) as error:
        raise _unreadable(folder, error) from None
    chosen = kind.rescored(told["settings"], settings)
    try:
        recommender = kind.build(chosen, 0, device, Sizes(0, 0, 0, 0))
        recommender.load_weights(weights)
    except RuntimeError as error:
        raise _unreadable(folder, error) from None
    nothing = recommender.state()
    return FittedModel(
        name=kind.name,
        recommender=recommender,
        user_ids=Vocabulary(),
        item_ids=Vocabulary(),
        seen=SeenPairs.of_records(np.zeros(0, PAIR)),
        exclude_seen=False,
        after_validation=nothing,
        settings=told["settings"],
    )


def _unreadable(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{folder}: these weights cannot be read ({error}); make them anew or restore them")


def save_weights(folder: Path, model: str, settings: dict[str, Any], weights: Tensors) -> None:
    """Write weights that `load_weights` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(weights, folder / _WEIGHTS)
    (folder / _MODEL).write_text(json.dumps({"model": model, "settings": settings}, indent=2) + "\n")
