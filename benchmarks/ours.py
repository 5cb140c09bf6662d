"""felrec's side: a model in the middle of a log, and the lengths of the sequences that it encodes there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from logs import fill
from numpy.typing import NDArray

from felrec.config import TrainingSettings, divide, read_pairs
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.evaluation.rules import BLOCK
from felrec.model.paper.cache import last_occurrence
from felrec.model.paper.felrec import FELRec, FELRecSettings
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Trainer


def settings_of(pairs: list[str]) -> tuple[FELRecSettings, TrainingSettings]:
    """The paper's settings, overridden by `--set`."""
    return divide(read_pairs(pairs), FELRecSettings, "felrec-q")


def model_before(events: Events, start: int, settings: FELRecSettings) -> FELRec:
    """A model with the histories of events[:start] and a random vector for every user and item of `events`."""
    model = FELRec(settings)
    fill(model.users.histories, events.users[:start], events.items[:start])
    fill(model.items.histories, events.items[:start], events.users[:start])
    generator = torch.Generator().manual_seed(0)
    for cache, rows in ((model.users.cache, events.users), (model.items.cache, events.items)):
        cache.restore(torch.randn(int(rows.max()) + 1, settings.width, generator=generator))
    return model


def trainer_of(model: FELRec, events: Events, training: TrainingSettings) -> Trainer:
    """A trainer for single steps; it writes nothing."""
    model.train()
    trainer = Trainer(model, events, training, RunDirectory(Path()), dict)
    trainer.steps = len(model.batches(events, training, 0))
    return trainer


# Lengths of sequences, for counting arithmetic


def lengths_before(owners: Rows, start: int, stop: int, limit: int) -> NDArray[np.int64]:
    """Positions encoded for each event from `start` to `stop`: its owner's history and an empty slot."""
    return np.minimum(limit, _earlier(owners)[start:stop] + 1)


def lengths_observed(owners: Rows, start: int, stop: int, limit: int) -> NDArray[np.int64]:
    """The same for replay, which encodes each owner once per block, including the block's events."""
    earlier = _earlier(owners)[start:stop]
    block = np.arange(stop - start) // BLOCK["online"]
    last = last_occurrence(block * (int(owners.max()) + 1) + owners[start:stop])
    return np.minimum(limit, earlier[last] + 2)


def _earlier(owners: Rows) -> NDArray[np.int64]:
    """Number of earlier events of each event's owner."""
    whole_log = Pending.within_block(owners, owners)
    return whole_log.stops - whole_log.starts
