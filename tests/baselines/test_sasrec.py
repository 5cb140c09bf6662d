"""SASRec: attention that does not look ahead, both losses, and what a score is made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from felrec.baselines.sasrec import SASRec, SASRecSettings
from felrec.data.events import Events
from felrec.data.split import Sizes
from felrec.data.windows import Windows
from felrec.model.paper.attention import TransformerBlock
from felrec.recommender import Queries

ITEMS = 9
EVERY_ITEM = np.arange(ITEMS, dtype=np.int32)
GENERATOR = np.random.default_rng(0)
EVENTS = Events.of(GENERATOR.integers(0, 6, 50), GENERATOR.integers(0, ITEMS, 50), np.arange(50))


def model(**settings: Any) -> SASRec:
    small = {
        "width": 8,
        "layers": 2,
        "heads": 2,
        "feed_forward": 6,
        "history_length": 5,
        "dropout": 0.0,
        "negatives": 3,
    }
    return SASRec(SASRecSettings(**{**small, **settings}), 0, "cpu", Sizes(6, ITEMS, 6, ITEMS))


def naive_block(block: TransformerBlock, x: Tensor) -> Tensor:
    """One sequence (N, D), one head and one position at a time."""
    size = x.shape[1] // block.attention.heads
    query, key, value = block.attention.query_key_value(x).chunk(3, dim=1)
    mixed = torch.zeros_like(x)
    for head in range(block.attention.heads):
        part = slice(head * size, (head + 1) * size)
        for now in range(len(x)):
            match = key[: now + 1, part] @ query[now, part] / math.sqrt(size)
            mixed[now, part] = match.softmax(dim=0) @ value[: now + 1, part]
    x = block.attention_norm(x + block.attention.output(mixed))
    transformed: Tensor = block.feed_forward_norm(x + block.contract(F.relu(block.expand(x))))
    return transformed


def naive_vectors(made: SASRec, rows: list[int]) -> Tensor:
    """Predictions (N, D) after each of some table rows."""
    ages = list(range(len(rows) - 1, -1, -1))
    x = made.input_norm(made.table.weight[rows] * math.sqrt(8) + made.codes[ages])
    for block in made.blocks:
        assert isinstance(block, TransformerBlock)
        x = naive_block(block, x)
    vectors: Tensor = made.output(x)
    return vectors


@pytest.mark.parametrize("loss", ["bpr", "cross-entropy"])
def test_the_loss_is_that_of_every_position(loss: str) -> None:
    made = model(loss=loss)
    batch = Windows(EVENTS, 5, 1000)[0]
    before = made.memory()
    found = made.loss(batch).item()
    made.load_memory(before)
    negatives = made._negatives(len(EVENTS), 3)
    expected, at = 0.0, 0
    for window in np.argsort(batch.lengths, kind="stable"):  # the order in which they are encoded
        length = batch.lengths[window]
        scores = naive_vectors(made, (batch.inputs[window, :length] + 1).tolist()) @ made.table.weight[1:].T
        for place in range(length):
            target = batch.targets[window, place]
            if loss == "bpr":
                differences = [(scores[place, i] - scores[place, target]).item() for i in negatives[at]]
                expected += sum(math.log(1 + math.exp(difference)) for difference in differences)
            else:
                expected -= scores[place].log_softmax(dim=0)[target].item() / len(EVENTS)
            at += 1
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_position_sees_only_itself_and_what_was_before() -> None:
    made = model().eval()
    rows, lengths = torch.randint(1, ITEMS + 1, (4, 5)), torch.tensor([5, 5, 4, 2])
    whole = made._encode(rows, lengths)
    for place in range(5):
        changed = rows.clone()
        changed[:, place] = changed[:, place] % ITEMS + 1
        after = made._encode(changed, lengths)
        assert torch.equal(after[:, :place], whole[:, :place])
        assert not torch.allclose(after[0, place], whole[0, place])


def test_padding_does_not_matter() -> None:
    made = model().eval()
    rows = torch.randint(1, ITEMS + 1, (1, 3))
    padded = torch.cat([rows, torch.tensor([[7, 0]])], dim=1)
    length = torch.tensor([3])
    assert torch.allclose(made._encode(padded, length)[:, :3], made._encode(rows, length), atol=1e-6)


@pytest.mark.parametrize("items", [[], [3], [1, 2, 3, 4], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 0]])
def test_scores_are_made_of_the_newest_items(items: list[int]) -> None:
    made = model()
    with_unknown = [item for known in items for item in (known, ITEMS + known)]  # those are left out
    made.observe(Events.of([0] * len(with_unknown), with_unknown, range(len(with_unknown))))
    rows = [item + 1 for item in items[-5:]]
    vectors = naive_vectors(made, rows if len(rows) == 5 else [0, *rows])
    scores = made.score(Queries.now(np.array([0]), 0.0), EVERY_ITEM)[0]
    assert torch.allclose(scores, made.table.weight[1:] @ vectors[-1], atol=1e-5)


def test_pending_events_count_as_if_they_were_observed() -> None:
    made, observing = model(), model()
    items = EVENTS.items.copy()
    items[::7] += ITEMS  # some are unknown
    events = Events(EVENTS.users, items, EVENTS.times)
    made.observe(events[:20])
    observing.observe(events[:20])
    scores = made.score(Queries.before_each(events[20:]), EVERY_ITEM)
    for at in range(20, 50):
        alone = observing.score(Queries.now(events.users[at : at + 1], 0.0), EVERY_ITEM)[0]
        assert torch.allclose(scores[at - 20], alone, atol=1e-5)
        observing.observe(events[at : at + 1])


def test_dropout_is_on_only_in_training() -> None:
    made = model(dropout=0.5)
    batch = Windows(EVENTS, 5, 1000)[0]
    before = made.memory()
    first = made.loss(batch).item()
    assert made.loss(batch).item() != first
    made.load_memory(before)
    assert made.loss(batch).item() == first
    asked = Queries.now(np.arange(6), 0.0)
    assert torch.equal(made.score(asked, EVERY_ITEM), made.score(asked, EVERY_ITEM))
