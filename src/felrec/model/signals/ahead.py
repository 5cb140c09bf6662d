"""Ahead: items that users take soon after an item, not only directly after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.model.signals.item_links import MEASURES, WINDOW, ItemLinks, Links

SOON = 6  # newest items of a user that an event comes soon after


class Ahead(ItemLinks):
    """Transitions from an item to the next six, looked up for the last ten items of a user.

    `together` counts pairs without their order, `follows` only those that are next to each other.
    """

    names = tuple(f"ahead.{measure}" for measure in MEASURES)
    table, reach, strength = "ahead_", WINDOW, "log_confidence"

    @staticmethod
    def links(history: Rows, mask: NDArray[np.bool_], items: Rows) -> Links:
        """An event links each of the user's last six items to its item."""
        event, place = np.nonzero(mask[:, -SOON:])
        return history[:, -SOON:][event, place], items[event]
