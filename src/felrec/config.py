"""Settings of models and of training, from defaults, a TOML file and `key=value` pairs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from felrec.errors import ConfigError

M = TypeVar("M", bound="Settings")


class Settings(BaseModel):
    """Base of all settings: unknown names are refused, values are checked, instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of_scoring: ClassVar[frozenset[str]] = frozenset()  # settings that may be changed after training


class TrainingSettings(Settings):
    """How a model is trained; the defaults are the paper's."""

    epochs: int = Field(100, ge=1, description="passes over the training part")
    batch_size: int = Field(1024, ge=2, description="events per step")
    optimizer: Literal["sgd", "adamw"] = Field("sgd", description="sgd is the paper's")
    lr: float = Field(0.01, gt=0, description="highest learning rate")
    min_lr: float = Field(1e-7, ge=0, description="where the warm-up starts and the cosine ends")
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    weight_decay: float = Field(0.0, ge=0, description="of either optimiser")
    warmup: float = Field(0.1, ge=0, le=1, description="share of the training with warm-up")
    schedule: Literal["auto", "epoch", "step"] = Field(
        "auto", description="when the rate changes; auto is by epoch from 100 epochs on, else by step"
    )
    trained_share: float = Field(1.0, gt=0, le=1, description="share of the events to train on; all update the state")
    clip: float = Field(1.0, gt=0, description="gradients are clipped to plus or minus this")
    patience: int = Field(0, ge=0, description="stop after this many epochs without improvement; 0: never")
    validate_every: int = Field(0, ge=0, description="also validate every n steps (only for monitoring); 0: never")
    exclude_seen: Literal["auto", "yes", "no"] = Field(
        "auto", description="whether validation excludes seen items, as in felrec evaluate"
    )
    checkpoint_seconds: float = Field(120.0, gt=0, description="minimum time between checkpoints within an epoch")
    precision: Literal["float32", "bfloat16"] = Field("float32", description="in which the loss is computed")
    tensorboard: bool = Field(False, description="write scalars for TensorBoard into the run directory")
    seed: int = Field(0, ge=0, lt=2**62, description="of weights, dropout and queues")


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a TOML file as one flat dictionary; table names such as [model] are ignored."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; give --config an existing TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file ({error})") from None
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat.update(value if isinstance(value, dict) else {key: value})
    return flat


def read_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Settings given as `key=value`; a table name before the key (`model.width`) is allowed.

    >>> read_pairs(["width=64", "training.lr=0.1"])
    {'width': '64', 'lr': '0.1'}
    """
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair}: write it as key=value, for example --set width=64")
        settings[key.strip().rpartition(".")[2].replace("-", "_")] = value.strip()
    return settings


def divide(given: dict[str, Any], model: type[M], model_name: str) -> tuple[M, TrainingSettings]:
    """Divide flat settings between a model and its training, checking every name and value."""
    check_names(given, model, model_name)
    return (
        check(model, {k: v for k, v in given.items() if k in model.model_fields}),
        check(TrainingSettings, {k: v for k, v in given.items() if k in TrainingSettings.model_fields}),
    )


def check_names(given: Iterable[str], model: type[Settings], model_name: str) -> None:
    """Raise ConfigError for a setting that neither the model nor training has."""
    known = {*model.model_fields, *TrainingSettings.model_fields}
    for name in given:
        if name not in known:
            raise ConfigError(f"{model_name} has no setting '{name}'; it has: {', '.join(sorted(known))}")


def check(kind: type[M], values: dict[str, Any]) -> M:
    """Create settings from values; ConfigError names the first invalid value and the reason."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].removeprefix("Value error, ")
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{name}={first['input']!r}: {reason}" if name else reason) from None
