"""What a model tells of itself, so that it can be listed, configured, trained and served by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from felrec.config import Settings, TrainingSettings, check, check_names, divide
from felrec.data.split import PARTITIONS, Sizes
from felrec.errors import ConfigError
from felrec.recommender import Recommender

PAPER_SIZES = Sizes(train_users=137_884, train_items=34_460, users=162_541, items=59_047)
"""Of MovieLens 25M, split as in the paper. Those of the train part follow from its table of parameters, within 40."""


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
