"""What a score of FELRec-S is made of: by how much it falls without each signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from felrec.abilities import Part
from felrec.data.events import Rows
from felrec.model.signals.signal_set import SignalName
from felrec.recommender import Queries

if TYPE_CHECKING:
    from felrec.model.felrec_s import FELRecS

# The others are features of the log, the same for every user and item.
_SIGNALS: tuple[SignalName, ...] = ("repetition", "together", "follows", "ahead", "trend", "sequence", "vectors")


def explain(model: FELRecS, user: int, time: float, items: Rows) -> list[list[Part]]:
    """For each item, what raises its score for a user, most first; nothing for an item without events."""
    queries = Queries.now(np.array([user]), time)
    whole = model.score(queries, items)
    gains = {
        name: (whole - model.score_without(name, queries, items))[0].tolist()
        for name in _SIGNALS
        if name in model.settings.signals
    }
    return [
        _parts(model, user, item, {name: of_items[at] for name, of_items in gains.items()})
        for at, item in enumerate(items.tolist())
    ]


def _parts(model: FELRecS, user: int, item: int, gains: dict[SignalName, float]) -> list[Part]:
    signals = model.signals
    links = {"together": signals.together, "follows": signals.follows, "ahead": signals.ahead}
    parts = []
    for name, gain in sorted(gains.items(), key=lambda one: -one[1]):
        if gain > 0:  # NaN without events
            signal = links.get(name)
            parts.append(Part(name, gain, signal.leading_to(user, item) if signal else []))
    return parts
