"""Give events that are kept with a weight another one: a store does not know the kinds that the weights came from.

    3=5, context=0.5, negative=ignore

An entry is a weight as it was, as a number or a word of the table of kinds, and what it becomes. Events without a
weight are those that count with 1. Weights that no entry names stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from felrec.data.events import Events
from felrec.data.kinds import meaning_of
from felrec.errors import ConfigError

_OPTION = "--weights"


@dataclass(frozen=True)
class Reweighing:
    """What each weight becomes; NaN: the events are left out.

    >>> events = Events.of([0, 1, 2, 3], [5, 6, 7, 8], range(4), [3, 0, -1, np.nan])
    >>> changed = Reweighing.parse("3=5, context=ignore, 1=2").applied(events)
    >>> changed.items.tolist(), changed.weights.tolist()
    ([5, 7, 8], [5.0, -1.0, 2.0])
    """

    becomes: dict[float, float]

    @classmethod
    def parse(cls, text: str) -> Reweighing:
        """Read `old=new` pairs with commas between them."""
        becomes = dict[float, float]()
        for pair in text.split(","):
            old, equals, new = (word.strip() for word in pair.partition("="))
            if not equals:
                raise ConfigError(f"{_OPTION} {pair.strip()!r}: write it as 3=5, context=0.5 or negative=ignore")
            weight = meaning_of(old, old, _OPTION)
            if math.isnan(weight):
                raise ConfigError(f"{_OPTION} {pair.strip()!r}: ignored events are not in a store; give another weight")
            if weight in becomes:
                raise ConfigError(f"{_OPTION}: {old} has two entries; give it one")
            becomes[weight] = meaning_of(old, new, _OPTION)
        return cls(becomes)

    def applied(self, events: Events) -> Events:
        """The same events with their new weights, without those that are left out."""
        given = np.full(len(events), np.nan, np.float32) if events.weights is None else events.weights
        before, after = np.where(np.isnan(given), np.float32(1), given), given.copy()
        kept = np.ones(len(events), dtype=bool)
        for old, new in self.becomes.items():
            same = before == np.float32(old)
            after[same], kept[same] = new, not math.isnan(new)
        changed = replace(events, weights=None if np.isnan(after[kept]).all() else after)
        return changed[np.flatnonzero(kept)]
