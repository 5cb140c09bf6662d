"""Leave-one-out: the split that most published comparisons of sequential recommenders use.

It ignores time across users: a model trains on events that are later than those it is tested on. felrec's own
results never use it; it is here only to compare with published numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from felrec.data.events import Events
from felrec.data.pending import grouped

LEAST = 3  # fewest events of a tested user: one to train, one to validate and one to test


@dataclass(frozen=True)
class LeaveOneOut:
    """The three parts: train in time order; validation and test with one event per user, sorted by user."""

    train: Events
    validation: Events
    test: Events


def leave_one_out(events: Events) -> LeaveOneOut:
    """Each user's last event is for the test, the one before it for validation, the rest for training.

    >>> parts = leave_one_out(Events.of([7, 8, 7, 7, 7], [1, 2, 3, 4, 5], range(5)))
    >>> parts.train.items.tolist(), parts.validation.items.tolist(), parts.test.items.tolist()
    ([1, 2, 3], [4], [5])
    """
    order, first = grouped(events.users)
    last = np.append(np.unique(first)[1:], len(order)) - 1  # index of each user's last event
    last = last[last - first[last] + 1 >= LEAST]
    kept = np.ones(len(events), dtype=bool)
    kept[order[last]] = kept[order[last - 1]] = False
    return LeaveOneOut(events[np.flatnonzero(kept)], events[order[last - 1]], events[order[last]])
