"""The protocols by name: what a model may know when an event is scored, and which items are ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Protocol = Literal["online", "paper", "tgb-blind", "tgb-visible", "successive"]


@dataclass(frozen=True)
class Rules:
    """How a protocol passes over the events."""

    block: int  # events scored together unless the caller chooses
    fixed_block: bool = False
    observe_first: bool = False  # a block is observed before it is scored
    sees_block: bool = True  # a query has its user's earlier events of the block
    whole_catalogue: bool = False  # items without an event so far are ranked too
    one_of_simultaneous: bool = False  # other targets of the same user at the same time are not ranked
    only_with_history: bool = False  # the first event of a user is not predicted
    exclude_seen: bool | None = None  # None: the caller chooses


RULES: dict[Protocol, Rules] = {
    "online": Rules(block=256),
    "paper": Rules(block=1024, fixed_block=True, observe_first=True),
    "tgb-blind": Rules(
        block=200,
        fixed_block=True,
        sees_block=False,
        whole_catalogue=True,
        one_of_simultaneous=True,
        exclude_seen=False,
    ),
    "tgb-visible": Rules(block=1, whole_catalogue=True, one_of_simultaneous=True, exclude_seen=False),
    "successive": Rules(block=256, only_with_history=True, exclude_seen=True),
}
BLOCK: dict[Protocol, int] = {name: rules.block for name, rules in RULES.items()}
