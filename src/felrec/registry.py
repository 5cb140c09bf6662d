"""Every model by name: what it is, its settings, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from felrec.baselines.popularity import DecayedPopularity, Popularity
from felrec.baselines.repeat import Repeat
from felrec.config import DecayedPopularitySettings, FELRecSettings, PopularitySettings, RepeatSettings, Settings
from felrec.data.split import PARTITIONS
from felrec.errors import ConfigError
from felrec.model.felrec import FELRec
from felrec.recommender import Recommender


@dataclass(frozen=True)
class ModelKind:
    """A model that can be named on the command line."""

    name: str
    summary: str
    settings: type[Settings]
    build: Callable[[Any, int, str], Recommender]  # settings, seed, device

    def describe(self) -> dict[str, Any]:
        """What `felrec models --json` says: partitions, and parameters at the default, the paper's, sizes."""
        model = self.build(self.settings(), 0, "cpu")
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
            lambda settings, seed, device: FELRec(settings, "q", seed, device),
        ),
        ModelKind(
            "felrec-p",
            "FELRec trained by predicting the counterpart",
            FELRecSettings,
            lambda settings, seed, device: FELRec(settings, "p", seed, device),
        ),
        ModelKind(
            "popularity",
            "number of events of an item so far",
            PopularitySettings,
            lambda settings, seed, device: Popularity(settings),
        ),
        ModelKind(
            "decayed-popularity",
            "events of an item, halved every so many events of the log",
            DecayedPopularitySettings,
            lambda settings, seed, device: DecayedPopularity(settings),
        ),
        ModelKind(
            "repeat",
            "the user's own items first, then decayed popularity",
            RepeatSettings,
            lambda settings, seed, device: Repeat(settings),
        ),
    )
}


def model_kind(name: str) -> ModelKind:
    """The model of that name, or an error that lists them all."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigError(f"there is no model '{name}'; choose one of {', '.join(MODELS)}") from None
