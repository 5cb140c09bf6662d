"""Every model by name: what it is, its settings, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from felrec.baselines.popularity import DecayedPopularity, Popularity
from felrec.baselines.repeat import Repeat
from felrec.config import (
    DecayedPopularitySettings,
    FELRecSettings,
    PopularitySettings,
    RepeatSettings,
    Settings,
    TrainingSettings,
    divide,
)
from felrec.data.split import PARTITIONS, Sizes
from felrec.errors import ConfigError
from felrec.model.felrec import FELRec
from felrec.recommender import Recommender

PAPER_SIZES = Sizes(train_users=137_927, train_items=34_417, users=162_541, items=59_047)
"""Of MovieLens 25M, split as in the paper."""


@dataclass(frozen=True)
class ModelKind:
    """A model that can be named on the command line."""

    name: str
    summary: str
    settings: type[Settings]
    build: Callable[[Any, int, str, Sizes], Recommender]  # settings, seed, device, sizes of the log
    training: dict[str, Any] = field(default_factory=dict)  # where its defaults differ from those of `TrainingSettings`
    one_log: bool = False  # whether its weights belong to the users and items of the log it was trained on

    def divide(self, given: dict[str, Any]) -> tuple[Settings, TrainingSettings]:
        """The settings of the model and of its training, from those given and the model's own defaults."""
        return divide({**self.training, **given}, self.settings, self.name)

    def describe(self) -> dict[str, Any]:
        """What `felrec models --json` says: partitions, and parameters at the default, the paper's, sizes."""
        model = self.build(self.settings(), 0, "cpu", PAPER_SIZES)
        return {
            "name": self.name,
            "summary": self.summary,
            "partitions": [name for name in PARTITIONS if name in model.represents],
            "parameters": model.parameter_count(),
        }


MODELS = {
    kind.name: kind
    for kind in (
        ModelKind(
            "felrec-q",
            "FELRec trained by contrast with a queue",
            FELRecSettings,
            lambda settings, seed, device, sizes: FELRec(settings, "q", seed, device),
        ),
        ModelKind(
            "felrec-p",
            "FELRec trained by predicting the counterpart",
            FELRecSettings,
            lambda settings, seed, device, sizes: FELRec(settings, "p", seed, device),
        ),
        ModelKind(
            "popularity",
            "number of events of an item so far",
            PopularitySettings,
            lambda settings, seed, device, sizes: Popularity(settings),
        ),
        ModelKind(
            "decayed-popularity",
            "events of an item, halved every so many events of the log",
            DecayedPopularitySettings,
            lambda settings, seed, device, sizes: DecayedPopularity(settings),
        ),
        ModelKind(
            "repeat",
            "the user's own items first, then decayed popularity",
            RepeatSettings,
            lambda settings, seed, device, sizes: Repeat(settings),
        ),
    )
}


def model_kind(name: str) -> ModelKind:
    """The model of that name, or an error that lists them all."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigError(f"there is no model '{name}'; choose one of {', '.join(MODELS)}") from None
