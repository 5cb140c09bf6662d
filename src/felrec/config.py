"""Settings of models and of training, from defaults, a TOML file and `key=value` pairs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from felrec.errors import ConfigError

M = TypeVar("M", bound="Settings")


class Settings(BaseModel):
    """Base of all settings: unknown names are refused, values are checked, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of_scoring: ClassVar[frozenset[str]] = frozenset()  # what may be changed without training anew


class FELRecSettings(Settings):
    """Sizes and variants of FELRec-Q and FELRec-P; the defaults are the paper's."""

    width: int = Field(128, ge=2, description="size d of every vector")
    layers: int = Field(3, ge=1, description="Transformer blocks of the encoder")
    heads: int = Field(4, ge=1, description="attention heads")
    feed_forward: int = Field(256, ge=1, description="inner size of the feed-forward layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate of the encoder")
    history_length: int = Field(64, ge=1, description="newest counterparts N that are encoded")
    queue_size: int = Field(8192, ge=1, description="past projections K to contrast with (FELRec-Q)")
    temperature: float = Field(0.07, gt=0, description="temperature of the contrast (FELRec-Q)")
    normalisation: Literal["batch", "layer"] = Field("batch", description="in the heads; layer is the ablation -LN")
    projection: Literal["mlp", "none"] = Field("mlp", description="projection heads; none is the ablation -noMLP")
    share_projections: bool = Field(False, description="one head for users and items, the ablation -shareMLP")
    type_embedding: bool = Field(True, description="learned type vectors; off is the ablation -noType")
    score_from: Literal["vectors", "projections"] = Field("vectors", description="what the cosine compares")
    neighbours: int = Field(0, ge=0, description="recommend to the nearest users instead (10 is -NN), 0 is off")

    of_scoring: ClassVar[frozenset[str]] = frozenset({"score_from", "neighbours"})

    @model_validator(mode="after")
    def _fits(self) -> FELRecSettings:
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} must be even and a multiple of heads {self.heads}")
        return self


class PopularitySettings(Settings):
    """Popularity has nothing to set."""


class DecayedPopularitySettings(Settings):
    """Decayed popularity."""

    half_life: float | None = Field(None, gt=0, description="in events; chosen on validation unless given")


RepeatOrder = Literal["recency", "frequency", "blend"]


class RepeatSettings(Settings):
    """The user's own items first, then decayed popularity."""

    order: RepeatOrder | None = Field(None, description="chosen on validation unless given")
    half_life: float | None = Field(None, gt=0, description="in events; chosen on validation unless given")
    pause: int = Field(30, ge=0, description="minutes; unless by recency, what was taken since then comes last")


class ItemKNNSettings(Settings):
    """Item-kNN by co-occurrence."""

    history_length: int = Field(10, ge=1, description="newest items of a user, to count together and to score from")
    shrinkage: float = Field(10.0, ge=0, description="makes items with few events less similar to others")
    popular_share: float | None = Field(
        None, gt=0, description="of decayed popularity in the score; chosen on validation unless given"
    )
    half_life: float | None = Field(
        None, gt=0, description="of popularity, in events; chosen on validation unless given"
    )


class BPRMFSettings(Settings):
    """BPR-MF; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    negatives: int = Field(1, ge=1, description="items drawn at random to compare each target with")


class GRU4RecSettings(Settings):
    """GRU4Rec; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every hidden state")
    layers: int = Field(3, ge=1, description="GRU layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate between the layers")
    negatives: int = Field(8, ge=1, description="items drawn at random to compare each target with")


class GRU4RecBPTTSettings(Settings):
    """GRU4Rec-BPTT; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    layers: int = Field(3, ge=1, description="GRU layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate before each layer")
    history_length: int = Field(64, ge=1, description="newest items of a user that are read")
    negatives: int = Field(8, ge=1, description="items drawn at random to compare each target with")


class SASRecSettings(Settings):
    """SASRec; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=2, description="size of every vector")
    layers: int = Field(3, ge=1, description="Transformer blocks")
    heads: int = Field(4, ge=1, description="attention heads")
    feed_forward: int = Field(256, ge=1, description="inner size of the feed-forward layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate of the encoder")
    history_length: int = Field(64, ge=1, description="newest items of a user that are read")
    loss: Literal["bpr", "cross-entropy"] = Field(
        "bpr", description="against sampled negatives as in the paper, or against the whole catalogue"
    )
    negatives: int = Field(8, ge=1, description="items drawn at random to compare each target with (bpr)")

    @model_validator(mode="after")
    def _fits(self) -> SASRecSettings:
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} must be even and a multiple of heads {self.heads}")
        return self


class JODIESettings(Settings):
    """JODIE*; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    time: Literal["off", "on"] = Field("off", description="how long users and items stood still; off is the paper's")
    online_lr: float = Field(0.01, ge=0, description="learning rate of the step for each observed block, 0 for none")


class TrainingSettings(Settings):
    """How a model is trained; the defaults are the paper's."""

    epochs: int = Field(100, ge=1, description="passes over the training part")
    batch_size: int = Field(1024, ge=2, description="events of a step")
    optimizer: Literal["sgd", "adamw"] = Field("sgd", description="sgd is the paper's")
    lr: float = Field(0.01, gt=0, description="highest learning rate")
    min_lr: float = Field(1e-7, ge=0, description="where the warm-up starts and the cosine ends")
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
    weight_decay: float = Field(0.0, ge=0, description="of either optimiser")
    warmup: float = Field(0.1, ge=0, le=1, description="share of the training spent warming up")
    schedule: Literal["auto", "epoch", "step"] = Field(
        "auto", description="when the rate changes; auto is by epoch from 100 epochs on, else by step"
    )
    trained_share: float = Field(1.0, gt=0, le=1, description="share of the events to learn from; all enter the cache")
    clip: float = Field(1.0, gt=0, description="gradients are clipped to plus or minus this")
    patience: int = Field(0, ge=0, description="stop after this many epochs without a better one, 0 never")
    validate_every: int = Field(0, ge=0, description="also validate every n steps (to watch, not to choose), 0 never")
    exclude_seen: Literal["auto", "yes", "no"] = Field(
        "auto", description="whether validation leaves out what users already had, as in felrec evaluate"
    )
    checkpoint_seconds: float = Field(120.0, gt=0, description="least time between two checkpoints within an epoch")
    precision: Literal["float32", "bfloat16"] = Field("float32", description="bfloat16 is autocast")
    tensorboard: bool = Field(False, description="write scalars for TensorBoard into the run directory")
    seed: int = Field(0, ge=0, lt=2**62, description="of weights, dropout and queues")


def read_config(path: Path) -> dict[str, Any]:
    """Flat settings of a TOML file; tables such as [model] and [training] are only for the reader."""
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
    """Refuse settings that neither the model nor a training has."""
    known = {*model.model_fields, *TrainingSettings.model_fields}
    for name in given:
        if name not in known:
            raise ConfigError(f"{model_name} has no setting '{name}'; it has: {', '.join(sorted(known))}")


def check(kind: type[M], values: dict[str, Any]) -> M:
    """Settings from values, or one line that says which does not fit and why."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].removeprefix("Value error, ")
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{name}={first['input']!r}: {reason}" if name else reason) from None
