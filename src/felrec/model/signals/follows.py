"""Follows: items that users take directly after each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.model.signals.item_links import MEASURES, ItemLinks, Links


class Follows(ItemLinks):
    """Transitions from an item to the next, looked up for the last two items of a user."""

    names = tuple(f"follows.{measure}" for measure in MEASURES)
    table, reach, strength = "next_", 2, "log_confidence_of_newest"

    @staticmethod
    def links(history: Rows, mask: NDArray[np.bool_], items: Rows) -> Links:
        """An event links the user's last item to its item."""
        again = np.flatnonzero(mask[:, -1])
        return history[again, -1], items[again]
