"""Together: items that the same users take within a window of events, in both directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.model.signals.item_links import MEASURES, WINDOW, ItemLinks, Links


class Together(ItemLinks):
    """Co-occurrence with the last ten items of a user."""

    names = tuple(f"together.{measure}" for measure in MEASURES)
    table, reach, strength = "near_", WINDOW, "log_cosine"

    @staticmethod
    def links(history: Rows, mask: NDArray[np.bool_], items: Rows) -> Links:
        """An event links its item with each of the user's last ten items, in both directions."""
        event, place = np.nonzero(mask[:, -WINDOW:])
        earlier, later = history[:, -WINDOW:][event, place], items[event]
        other = earlier != later  # a pair of an item with itself has one direction
        return np.concatenate([earlier, later[other]]), np.concatenate([later, earlier[other]])
