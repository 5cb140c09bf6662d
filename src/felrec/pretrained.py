"""Weights without a log: the bundled weights, and those made by `felrec pretrain`."""

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
from felrec.files import write_atomically
from felrec.fitted import FittedModel
from felrec.recommender import Tensors
from felrec.registry import model_kind
from felrec.training.checkpoint import write_tensors

PRETRAINED = "pretrained"  # the name of the bundled weights in place of a run directory
_SHIPPED = Path(__file__).parent / "weights"
_WEIGHTS, _MODEL = "weights.safetensors", "model.json"


def load_pretrained() -> FittedModel:
    """The bundled weights. The model starts with no users or items: `observe` events, or evaluate it on a log.

    >>> model = load_pretrained()
    >>> model.observe([("ada", "tea", 0), ("ada", "milk", 60), ("bob", "tea", 120)])
    >>> [item for item, score in model.recommend("bob", k=1, exclude_seen=True)]
    ['milk']
    """
    return load_weights(_SHIPPED)


def check_name(out: Path) -> None:
    """Raise ConfigError for a directory with the name of the bundled weights."""
    if str(out) == PRETRAINED:
        raise ConfigError(f"--out {out}: this name is reserved for the bundled weights; choose another --out")


def weights_folder(source: Path | str) -> Path | None:
    """The folder of weights that `source` names; None if it names a run."""
    folder = _SHIPPED if str(source) == PRETRAINED else Path(source)
    return folder if (folder / _MODEL).exists() else None


def load_weights(folder: Path, *, device: str = "cpu", settings: dict[str, Any] | None = None) -> FittedModel:
    """Load a trained model with an empty state."""
    try:
        saved = json.loads((folder / _MODEL).read_text())
        weights = load_file(folder / _WEIGHTS)
        kind = model_kind(saved["model"])
        kind.rescored(saved["settings"], None)
    except (OSError, json.JSONDecodeError, KeyError, SafetensorError, ConfigError) as error:
        raise _unreadable(folder, error) from None
    chosen = kind.rescored(saved["settings"], settings)
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
        settings=saved["settings"],
    )


def _unreadable(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{folder}: these weights cannot be read ({error}); restore them or train again")


def save_weights(folder: Path, model: str, settings: dict[str, Any], weights: Tensors) -> None:
    """Write weights that `load_weights` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(weights, folder / _WEIGHTS)
    write_atomically(folder / _MODEL, json.dumps({"model": model, "settings": settings}, indent=2) + "\n")
