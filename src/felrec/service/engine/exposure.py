"""How evenly recommendations are spread over the catalogue."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from felrec.answers.statistics import Evenness
from felrec.data.events import Rows

_REMEMBERED = 1_000  # answers


class Work(NamedTuple):
    """What all answers took."""

    answers: int
    items_scored: int


class Exposure:
    """The items of the last answers. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._answers: deque[Rows] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()
        self.work = Work(0, 0)

    def add(self, rows: Rows, scored: int) -> None:
        """Record the items of one answer, and how many were scored to find them."""
        self._answers.append(rows)
        with self._lock:
            self.work = Work(self.work.answers + 1, self.work.items_scored + scored)

    def forget(self) -> None:
        """Forget the items of all answers: their rows mean other items now."""
        self._answers.clear()

    def bias(self, item_events: NDArray[np.int64]) -> Evenness:
        """Statistics of the recorded answers, given the number of events of each item."""
        answers = list(self._answers)
        shown = np.concatenate([*answers, np.zeros(0, dtype=np.int32)])
        popular = np.argsort(-item_events, kind="stable")
        popular = popular[item_events[popular] > 0]
        counts = np.bincount(shown[shown < len(item_events)], minlength=len(item_events))[popular]
        total = int(counts.sum())
        if not total:
            return Evenness(len(answers), 0.0, 0.0, (0.0,) * 10)
        deciles = [float(part.sum() / total) for part in np.array_split(counts, 10)]
        return Evenness(len(answers), gini(counts), float((counts > 0).mean()), tuple(deciles))


def gini(counts: NDArray[np.integer]) -> float:
    """The Gini coefficient: 0 if all counts are equal, near 1 if one item has everything.

    >>> gini(np.array([1, 1, 1, 1])), gini(np.array([0, 0, 0, 4]))
    (0.0, 0.75)
    """
    ordered = np.sort(counts).astype(np.float64)
    ranks = np.arange(1, len(ordered) + 1)
    return float(2 * (ranks * ordered).sum() / (len(ordered) * ordered.sum()) - (len(ordered) + 1) / len(ordered))
