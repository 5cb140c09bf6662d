"""The description of a model, with which it is listed, configured, trained and served by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from felrec.config import Settings, TrainingSettings, check, check_names, divide
from felrec.data.split import PARTITIONS, Sizes
from felrec.errors import ConfigError
from felrec.recommender import Recommender

PAPER_SIZES = Sizes(train_users=137_884, train_items=34_460, users=162_541, items=59_047)
"""Sizes of MovieLens 25M, split as in the paper. The train sizes are derived from its parameter counts, within 40."""

RECIPE = "recipe"  # a setting that stands for others


@dataclass(frozen=True)
class ModelKind:
    """A model that can be named on the command line."""

    name: str
    summary: str
    settings: type[Settings]
    build: Callable[[Any, int, str, Sizes], Recommender]  # settings, seed, device, sizes of the log
    training: dict[str, Any] = field(default_factory=dict)  # defaults that differ from those of `TrainingSettings`
    one_log: bool = False  # whether its weights only fit the users and items of its training log
    recipes: dict[str, dict[str, Any]] = field(default_factory=dict)  # named sets of settings

    def divide(self, given: dict[str, Any]) -> tuple[Settings, TrainingSettings]:
        """The settings of the model and of its training, from `given` and the model's defaults."""
        return divide({**self.training, **self.with_recipe(given)}, self.settings, self.name)

    def with_recipe(self, given: dict[str, Any]) -> dict[str, Any]:
        """Replace the setting `recipe`, if given, by the settings it stands for; other given settings win."""
        name = given.get(RECIPE)
        if name is None:
            return given
        if name not in self.recipes:
            known = f"it has: {', '.join(self.recipes)}" if self.recipes else "it has none"
            raise ConfigError(f"{self.name} has no recipe '{name}'; {known}")
        return {**self.recipes[name], **{key: value for key, value in given.items() if key != RECIPE}}

    def rescored(self, trained: dict[str, Any], given: dict[str, Any] | None) -> Settings:
        """The settings that a model was trained with, with `given` scoring settings replaced."""
        check_names(given or {}, self.settings, self.name)
        for name in given or {}:
            if name not in self.settings.of_scoring:
                known = ", ".join(sorted(self.settings.of_scoring))
                can = f"only these can: {known}" if known else "train it again with felrec train"
                raise ConfigError(f"{self.name}: '{name}' cannot be changed after training; {can}")
        return check(self.settings, {**trained, **(given or {})})

    def describe(self) -> dict[str, Any]:
        """The entry of `felrec models --json`: partitions, and parameters at the paper's sizes."""
        model = self.build(self.settings(), 0, "cpu", PAPER_SIZES)
        return {
            "name": self.name,
            "summary": self.summary,
            "partitions": [name for name in PARTITIONS if name in model.represents],
            "parameters": model.parameter_count(),
        }
