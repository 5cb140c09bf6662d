"""How far an experiment is scaled down to fit a budget; every result page states it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import Field, FiniteFloat

from felrec.config import Settings, check
from felrec.data.log import InteractionLog
from felrec.data.split import Split, split_log
from felrec.errors import ConfigError


class Scale(Settings):
    """The scale of an experiment; the default is the full experiment."""

    events: FiniteFloat = Field(
        1.0, gt=0, description="newest events of the log to keep: a share up to 1, a number above 1"
    )
    epochs: int | None = Field(None, ge=1, description="maximum number of passes over the training part")
    trained_share: float | None = Field(None, gt=0, le=1, description="share of the events with gradients")
    minutes: FiniteFloat | None = Field(
        None, gt=0, description="CPU minutes for each trained model, including validation"
    )

    def cut(self, log: InteractionLog) -> InteractionLog:
        """The newest part of a log."""
        wanted = round(self.events * len(log)) if self.events <= 1 else round(self.events)
        return log if wanted >= len(log) else log.part(len(log) - max(1, wanted), len(log))

    def of_training(self) -> dict[str, Any]:
        """The values that are set and affect only trained models."""
        return self.model_dump(exclude={"events"}, exclude_none=True)

    def describe(self) -> str:
        """The scale in words.

        >>> Scale(events=0.1, minutes=20).describe()
        'the newest 10 % of the events, 20 CPU minutes for each trained model including validation'
        >>> Scale().describe()
        "all events, each model's own number of epochs"
        """
        share = f"{100 * self.events:g} %" if self.events <= 1 else f"{self.events:,.0f}"
        said = ["all events" if self.events == 1 else f"the newest {share} of the events"]
        if self.minutes:
            said.append(f"{self.minutes:g} CPU minutes for each trained model including validation")
        if self.epochs:
            said.append(f"at most {self.epochs} epochs" if self.minutes else f"{self.epochs} epochs")
        if not self.minutes and not self.epochs:
            said.append("each model's own number of epochs")
        if self.trained_share:
            said.append(f"gradients from {100 * self.trained_share:g} % of the events for models with that setting")
        return ", ".join(said)


@dataclass(frozen=True)
class Data:
    """A named log, cut to scale and split."""

    name: str
    split: Split
    events: int  # in the whole log

    @classmethod
    def of(cls, name: str, log: InteractionLog, scale: Scale) -> Data:
        """Cut and split a log."""
        return cls(name, split_log(scale.cut(log)), len(log))

    @property
    def key(self) -> str:
        """Name and start of the fingerprint, because logs of one name can be cut to different scales."""
        return f"{self.name}-{self.split.log.fingerprint[:8]}"

    def to_json(self) -> dict[str, Any]:
        """The description of the log in the JSON of a result."""
        log = self.split.log
        sizes = {"events": len(log), "events_before_scale": self.events, "users": log.n_users, "items": log.n_items}
        return {"name": self.name, **sizes, "fingerprint": log.fingerprint}

    def describe(self) -> str:
        """Name and sizes of the log in words."""
        log = self.split.log
        return f"{self.name} ({len(log):,} events of {log.n_users:,} users and {log.n_items:,} items)"


def read_scale(pairs: Iterable[str]) -> Scale:
    """Parse a scale from `key=value` pairs.

    >>> read_scale(["events=0.5", "epochs=3"]).epochs
    3
    """
    given = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in Scale.model_fields:
            known = ", ".join(f"{name}=…" for name in Scale.model_fields)
            raise ConfigError(f"--scale {pair}: unknown key or no value; give one of {known}")
        given[key] = value
    return check(Scale, given)
