"""GRU4Rec: sessions that are cached, advanced one event at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from felrec.baselines.gru4rec import GRU4Rec, GRU4RecSettings, OneHotGRUCell
from felrec.config import TrainingSettings
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.split import Sizes
from felrec.recommender import Queries

ITEMS = 6
GENERATOR = np.random.default_rng(0)
EVENTS = Events.of(GENERATOR.integers(0, 8, 60), GENERATOR.integers(0, ITEMS, 60), np.arange(60))
EVERY_ITEM = np.arange(ITEMS, dtype=np.int32)


def model(dropout: float = 0.0) -> GRU4Rec:
    return GRU4Rec(
        GRU4RecSettings(width=4, layers=3, dropout=dropout, negatives=3), 0, "cpu", Sizes(8, ITEMS, 8, ITEMS)
    )


def naive_hidden(made: GRU4Rec, items: list[int]) -> Tensor:
    """Hidden states (L, D) after the beginning of a session and then each item."""
    states = [torch.zeros(4) for _ in made.cells]
    for row in [0, *(item + 1 for item in items)]:
        below: Tensor = torch.tensor(row)
        for layer, cell in enumerate(made.cells):
            states[layer] = below = cell(below[None], states[layer][None])[0]
    return torch.stack(states)


def naive_scores(made: GRU4Rec, items: list[int]) -> Tensor:
    top = naive_hidden(made, items)[-1]
    return torch.stack([made.output.weight[i] @ top + made.output.bias[i] for i in range(ITEMS)])


def test_the_one_hot_cell_is_a_gru_cell_of_one_hot_vectors() -> None:
    ours, usual = OneHotGRUCell(5, 4), nn.GRUCell(5, 4)
    usual.weight_ih.data = ours.rows.weight.detach().T.clone()
    usual.bias_ih.data.normal_()
    ours.bias.data = usual.bias_ih.detach().clone()
    usual.weight_hh.data = ours.hidden.weight.detach().clone()
    usual.bias_hh.data = ours.hidden.bias.detach().clone()
    rows, hidden = torch.tensor([3, 0, 4]), torch.randn(3, 4)
    expected = usual(nn.functional.one_hot(rows, 5).float(), hidden)
    assert torch.allclose(ours(rows, hidden), expected, atol=1e-6)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in usual.parameters())


@pytest.mark.parametrize("block", [1, 7, 60])
def test_scores_are_those_of_the_whole_session(block: int) -> None:
    made = model()
    for part in EVENTS.blocks(block):
        made.observe(part)
    scores = made.score(Queries.now(np.arange(9), 0.0), EVERY_ITEM)
    for user in range(9):  # the last one is new
        assert torch.allclose(scores[user], naive_scores(made, EVENTS.items[EVENTS.users == user].tolist()), atol=1e-6)


def test_pending_events_count_as_if_they_were_observed() -> None:
    made = model()
    made.observe(EVENTS[:20])
    block = EVENTS[20:60]
    scores = made.score(Queries.before_each(block), EVERY_ITEM)
    for at in range(40):
        user = block.users[at]
        own = EVENTS.items[: 20 + at][EVENTS.users[: 20 + at] == user].tolist()
        assert torch.allclose(scores[at], naive_scores(made, own), atol=1e-6)


def test_items_that_were_not_learned_are_left_out() -> None:
    made = model()
    made.observe(Events.of([0, 0, 0, 1], [2, ITEMS + 5, 3, ITEMS], range(4)))
    scores = made.score(Queries.now(np.array([0, 1]), 0.0), EVERY_ITEM)
    assert torch.allclose(scores[0], naive_scores(made, [2, 3]), atol=1e-6)
    assert torch.allclose(scores[1], naive_scores(made, []), atol=1e-6)


def test_an_epoch_leaves_the_sessions_that_observing_leaves() -> None:
    trained, observing = model(), model()
    batches = trained.batches(EVENTS, TrainingSettings(batch_size=3, trained_share=0.5), 0)
    trained.begin_epoch()
    for step in range(len(batches)):
        trained.loss(batches[step])  # without an optimiser: the weights stay
    observing.observe(EVENTS)
    asked = Queries.now(np.arange(8), 0.0)
    assert torch.allclose(trained.score(asked, EVERY_ITEM), observing.score(asked, EVERY_ITEM), atol=1e-6)


def test_the_loss_is_bpr_of_each_next_item() -> None:
    made = model()
    made.observe(EVENTS[:20])
    batch = TimeBatch(Events.of([0, 3, 100], [1, 5, 2], range(3)))
    before = made.memory()
    state = made.state()
    loss = made.loss(batch).item()
    assert not torch.equal(made.state()["hidden"][0], state["hidden"][0])
    made.load_memory(before)
    negatives = made._negatives(3, 3)
    expected = 0.0
    for at, (user, item) in enumerate([(0, 1), (3, 5), (100, 2)]):
        scores = torch.tanh(naive_scores(made, EVENTS.items[:20][EVENTS.users[:20] == user].tolist()))
        for other in negatives[at]:
            expected += math.log(1 + math.exp((scores[other] - scores[item]).item()))
    assert loss == pytest.approx(expected, rel=1e-5)


def test_gradients_go_back_one_step() -> None:
    made = model()
    made.observe(Events.of([0, 0], [1, 2], range(2)))
    made.loss(TimeBatch(Events.of([0], [3], [2]))).backward()  # type: ignore[no-untyped-call]
    first = made.cells[0]
    assert isinstance(first, OneHotGRUCell)
    gradient = first.rows.weight.grad
    assert gradient is not None
    assert gradient.any(dim=1).nonzero().flatten().tolist() == [3]  # item 2, the newest
