"""Every model by name: what it is, its settings, and how to build it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from felrec.baselines.bpr_mf import BPRMF
from felrec.baselines.gru4rec import GRU4Rec
from felrec.baselines.gru4rec_bptt import GRU4RecBPTT
from felrec.baselines.item_knn import ItemKNN
from felrec.baselines.jodie import JODIE
from felrec.baselines.popularity import DecayedPopularity, Popularity
from felrec.baselines.repeat import Repeat
from felrec.baselines.sasrec import SASRec
from felrec.config import (
    BPRMFSettings,
    DecayedPopularitySettings,
    FELRecSettings,
    GRU4RecBPTTSettings,
    GRU4RecSettings,
    ItemKNNSettings,
    JODIESettings,
    PopularitySettings,
    RepeatSettings,
    SASRecSettings,
    Settings,
    TrainingSettings,
    check,
    check_names,
    divide,
)
from felrec.data.split import PARTITIONS, Sizes
from felrec.errors import ConfigError
from felrec.model.felrec_s import FELRecS
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.paper.felrec import FELRec
from felrec.recommender import Recommender

PAPER_SIZES = Sizes(train_users=137_884, train_items=34_460, users=162_541, items=59_047)
"""Of MovieLens 25M, split as in the paper. Those of the train part follow from its table of parameters, within 40."""

NO_WARMUP = {"warmup": 0.0}  # the authors' schedule for their baselines: half a cosine from the first epoch on


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

    def rescored(self, trained: dict[str, Any], given: dict[str, Any] | None) -> Settings:
        """The settings a model was trained with, but for those of scoring that are given."""
        check_names(given or {}, self.settings, self.name)
        for name in given or {}:
            if name not in self.settings.of_scoring:
                known = ", ".join(sorted(self.settings.of_scoring))
                can = f"only these can: {known}" if known else "train it anew, with felrec train"
                raise ConfigError(f"{self.name}: '{name}' cannot be changed after training; {can}")
        return check(self.settings, {**trained, **(given or {})})

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
            "felrec-s",
            "FELRec for logs of any size: seeded cache, trends, repetition, what goes together",
            FELRecSSettings,
            lambda settings, seed, device, sizes: FELRecS(settings, seed, device),
            {"epochs": 2, "batch_size": 256, "optimizer": "adamw", "lr": 0.01, "weight_decay": 0.01}
            | {"trained_share": 0.5},
        ),
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
            "bpr-mf",
            "one learned vector per user and item",
            BPRMFSettings,
            BPRMF,
            NO_WARMUP | {"epochs": 100, "batch_size": 4096, "lr": 0.01, "weight_decay": 0.001},
            one_log=True,
        ),
        ModelKind(
            "gru4rec",
            "GRU over one-hot items, with cached sessions",
            GRU4RecSettings,
            GRU4Rec,
            NO_WARMUP | {"epochs": 50, "lr": 0.001},
            one_log=True,
        ),
        ModelKind(
            "gru4rec-bptt",
            "GRU over learned items, trained through time",
            GRU4RecBPTTSettings,
            GRU4RecBPTT,
            NO_WARMUP | {"epochs": 50, "lr": 0.001},
            one_log=True,
        ),
        ModelKind(
            "sasrec",
            "causal self-attention over learned items",
            SASRecSettings,
            SASRec,
            NO_WARMUP | {"epochs": 50, "lr": 0.001},
            one_log=True,
        ),
        ModelKind(
            "jodie",
            "users and items moved by RNNs, learning on",
            JODIESettings,
            JODIE,
            NO_WARMUP | {"epochs": 50, "optimizer": "adamw", "lr": 0.1},
            one_log=True,
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
        ModelKind(
            "item-knn",
            "what was taken together with the user's last items",
            ItemKNNSettings,
            lambda settings, seed, device, sizes: ItemKNN(settings),
        ),
    )
}


def model_kind(name: str) -> ModelKind:
    """The model of that name, or an error that lists them all."""
    try:
        return MODELS[name]
    except KeyError:
        raise ConfigError(f"there is no model '{name}'; choose one of {', '.join(MODELS)}") from None
