"""The settings of FELRec-S: its signals and its sizes."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from felrec.config import Settings
from felrec.model.signals.signal_set import NEED_TREND, SIGNALS, SignalName

DEFAULT_SIGNALS: list[SignalName] = [name for name in SIGNALS if name not in ("sequence", "vectors", "hit-rates")]
_SWITCHES = {"cosine": "vectors", "domain": "profile", "rates": "hit-rates"}  # switches of format 1, and their signals
_ALWAYS_ON = ("seeded", "gate", "adaptive")  # switches of format 1 that no longer exist
_TABLES = {"own_items": "repetition", "near_items": "together", "next_items": "follows"}  # 0: off in format 1


class FELRecSSettings(Settings):
    """Signals and sizes of FELRec-S."""

    signals: list[SignalName] = Field(
        DEFAULT_SIGNALS,
        description=f"signals of the score, separated by commas: {', '.join(SIGNALS)}; hit-rates is for pretraining, "
        "sequence is for logs with long histories, vectors cost more than they add",
    )
    width: int = Field(64, ge=2, description="size d of every vector, and within the network of the signal sequence")
    layers: int = Field(1, ge=1, description="Transformer blocks of the encoder")
    heads: int = Field(4, ge=1, description="attention heads")
    feed_forward: int = Field(128, ge=1, description="inner size of the feed-forward layers")
    sequence_width: int = Field(128, ge=2, multiple_of=2, description="size of the item vectors of the signal sequence")
    history_length: int = Field(32, ge=1, description="number N of newest counterparts that are encoded")
    hidden: int = Field(32, ge=1, description="inner size of the item and the pair network")
    members: int = Field(1, ge=1, description="MLPs per ensemble; their scores are averaged")
    own_items: int = Field(128, ge=1, description="own items kept per user")
    near_items: int = Field(256, ge=1, description="co-occurring items kept per item")
    next_items: int = Field(256, ge=1, description="following items kept per item")
    ahead_items: int = Field(128, ge=1, description="items kept per item that come soon after it")
    new_item_weight: float = Field(
        8.0, ge=1, description="weight of an item's second event in the loss; 1: as any other"
    )
    new_item_lift: float = Field(
        0.0, ge=0, description="how far the score of a new item is learned to be above its log probability; 0: not"
    )
    item_loss: float = Field(0.1, ge=0, description="weight of the auxiliary loss that classifies the user; 0: off")

    @model_validator(mode="before")
    @classmethod
    def _from_format_1(cls, values: Any) -> Any:
        """Convert settings of format 1, which have a switch per part instead of a list of signals."""
        if not isinstance(values, dict) or not _SWITCHES.keys() <= values.keys():
            return values
        off = [name for name in (*_ALWAYS_ON, *_TABLES, "domain") if not values.get(name, True)]
        if off:
            raise ValueError(f"an older felrec trained this run without {off[0]}; it cannot be loaded, train again")
        on = {signal for switch, signal in _SWITCHES.items() if values[switch]} | {"trend", *_TABLES.values()}
        kept = {name: value for name, value in values.items() if name not in (*_SWITCHES, *_ALWAYS_ON)}
        return {**kept, "signals": [name for name in SIGNALS if name in on]}

    @field_validator("signals", mode="before")
    @classmethod
    def _listed(cls, signals: Any) -> Any:
        """A list, or names separated by commas; in one order, because the order says nothing."""
        names = [name.strip() for name in signals.split(",") if name.strip()] if isinstance(signals, str) else signals
        return sorted(names, key=SIGNALS.index) if set(names) <= set(SIGNALS) else names

    @model_validator(mode="after")
    def _fits(self) -> FELRecSSettings:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        if not self.signals or len(set(self.signals)) < len(self.signals):
            raise ValueError("signals: give at least one name, and each name once")
        if "hit-rates" in self.signals and not {"repetition", "together", "follows"} & set(self.signals):
            raise ValueError("signals: hit-rates needs repetition, together or follows; add one or leave hit-rates out")
        for name in NEED_TREND:
            if name in self.signals and "trend" not in self.signals:
                raise ValueError(f"signals: {name} needs trend; add trend or remove {name}")
        return self


SEQUENCE: dict[str, Any] = {
    "signals": [name for name in SIGNALS if name in DEFAULT_SIGNALS or name == "sequence"],
    "history_length": 64,
    "trained_share": 1.0,
    "epochs": 1,  # a second one fits what will not come again
    "lr": 0.005,
    "min_lr": 0.003,  # the vectors change with time: those of the last events must be learned as well as the first
}
"""A recipe for logs whose users have long histories, such as film ratings; it takes twice as long as the default."""
