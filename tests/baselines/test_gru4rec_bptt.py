"""GRU4Rec-BPTT."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from felrec.baselines.gru4rec_bptt import GRU4RecBPTT, GRU4RecBPTTSettings
from felrec.data.events import Events
from felrec.data.split import Sizes
from felrec.data.windows import Windows
from felrec.recommender import Queries

ITEMS = 6
EVERY_ITEM = np.arange(ITEMS, dtype=np.int32)


def model() -> GRU4RecBPTT:
    settings = GRU4RecBPTTSettings(width=4, layers=2, dropout=0.0, history_length=5, negatives=3)
    return GRU4RecBPTT(settings, 0, "cpu", Sizes(9, ITEMS, 9, ITEMS))


def naive_vector(made: GRU4RecBPTT, rows: list[int]) -> Tensor:
    """The prediction after table rows, one step and one sequence at a time."""
    x = made.table.weight[rows]
    for layer in made.layers:
        x, _ = layer(x)
    vector: Tensor = made.output(x[-1])
    return vector


def test_the_loss_is_bpr_at_every_position_from_the_items_up_to_there() -> None:
    made = model()
    events = Events.of([0, 1, 0, 0, 1, 0, 0], [1, 2, 3, 4, 5, 0, 2], range(7))
    batch = Windows(events, 5, 100)[0]
    before = made.memory()
    loss = made.loss(batch).item()
    made.load_memory(before)
    negatives = made._negatives(7, 3)
    expected, at = 0.0, 0
    for window in range(len(batch.lengths)):
        for place in range(batch.lengths[window]):
            vector = naive_vector(made, (batch.inputs[window, : place + 1] + 1).tolist())
            scores = made.table.weight[1:] @ vector
            target = batch.targets[window, place]
            expected += sum(math.log(1 + math.exp((scores[i] - scores[target]).item())) for i in negatives[at])
            at += 1
    assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("items", [[], [3], [1, 2, 3, 4], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 0]])
def test_scores_are_made_of_the_newest_items(items: list[int]) -> None:
    made = model()
    made.observe(Events.of([0] * len(items), items, range(len(items))))
    scores = made.score(Queries.now(np.array([0]), 0.0), EVERY_ITEM)[0]
    rows = [item + 1 for item in items[-5:]]
    vector = naive_vector(made, rows if len(rows) == 5 else [0, *rows])
    assert torch.allclose(scores, made.table.weight[1:] @ vector, atol=1e-6)
