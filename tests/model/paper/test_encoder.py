"""The encoder against a plain implementation that loops over sequences and heads."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from felrec.model.kernels.dropout import Masks, add_dropped, drop, relu_dropped
from felrec.model.paper.attention import TransformerBlock
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE, Encoder, initialise, sinusoids, with_empty_slot


def encoder(**changes: object) -> Encoder:
    sizes: dict[str, Any] = {"width": 16, "layers": 2, "heads": 4, "feed_forward": 24, "history_length": 6}
    built = Encoder(**{**sizes, **changes})
    initialise(built, torch.Generator().manual_seed(1))
    return built.eval()


def plain(model: Encoder, vectors: Tensor, kind: int) -> Tensor:
    """One sequence (n, D) without padding; its newest entry stands at the last position."""
    assert model.types is not None
    x = (vectors + model.types[kind]) * math.sqrt(16) + sinusoids(6, 16).flip(0)[6 - len(vectors) :]
    x = model.input_norm(x)
    for block in cast(list[TransformerBlock], list(model.blocks)):
        q, k, v = (x @ w.T for w in block.attention.query_key_value.weight.chunk(3))
        heads = []
        for h in range(4):
            part = slice(4 * h, 4 * h + 4)
            attention = torch.softmax(q[:, part] @ k[:, part].T / 2, dim=1)
            heads.append(attention @ v[:, part])
        attended = torch.cat(heads, dim=1) @ block.attention.output.weight.T
        x = block.attention_norm(x + attended)
        x = block.feed_forward_norm(x + block.contract(F.relu(block.expand(x))))
    return model.output(x.mean(dim=0))  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", [ITEM_SEQUENCE, USER_SEQUENCE])
def test_padded_batches_equal_single_sequences(kind: int) -> None:
    model, generator = encoder(), torch.Generator().manual_seed(2)
    vectors = torch.randn(4, 6, 16, generator=generator)
    lengths = [1, 3, 5, 6]
    mask = torch.tensor([[position >= 6 - length for position in range(6)] for length in lengths])
    batch = model(vectors, mask, kind)
    for i, length in enumerate(lengths):
        assert torch.allclose(batch[i], plain(model, vectors[i, 6 - length :], kind), atol=1e-5)


def test_trimming_empty_positions_changes_nothing() -> None:
    model = encoder()
    vectors = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(3))
    mask = torch.tensor([[False, False, False, True, True, True], [False, False, False, False, True, True]])
    whole = model(vectors, mask, ITEM_SEQUENCE)
    assert torch.allclose(whole, model(vectors[:, 3:], mask[:, 3:], ITEM_SEQUENCE), atol=1e-6)


def test_masked_positions_do_not_matter_and_visible_ones_do() -> None:
    model = encoder()
    vectors = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(4))
    mask = torch.tensor([[False, False, True, True, True, True]])
    before = model(vectors, mask, ITEM_SEQUENCE)
    hidden, shown = vectors.clone(), vectors.clone()
    hidden[0, 1] *= -1
    shown[0, 2] *= -1
    assert torch.allclose(before, model(hidden, mask, ITEM_SEQUENCE), atol=1e-6)
    assert not torch.allclose(before, model(shown, mask, ITEM_SEQUENCE), atol=1e-3)


def test_types_tell_users_from_items_unless_switched_off() -> None:
    vectors, mask = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(5)), torch.ones(1, 6).bool()
    typed, untyped = encoder(), encoder(type_embedding=False)
    assert not torch.allclose(typed(vectors, mask, 0), typed(vectors, mask, 1), atol=1e-3)
    assert torch.equal(untyped(vectors, mask, 0), untyped(vectors, mask, 1))


def test_the_empty_slot_precedes_short_histories_only() -> None:
    mask = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
    assert with_empty_slot(mask).astype(int).tolist() == [[0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 1]]
    assert with_empty_slot(np.array([[False], [True]])).all()


def masks(rate: float, seed: int) -> Masks:
    made = Masks(rate, torch.Generator().manual_seed(seed))
    made.refresh()
    return made


def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    kept = drop(torch.ones(1001, 333), masks(0.1, 6))
    assert float((kept == 0).float().mean()) == pytest.approx(0.1, abs=0.003)
    assert float(kept.mean()) == pytest.approx(1, abs=0.003)
    assert len(set(kept.flatten().tolist())) == 2
    columns = (kept == 0).float().mean(dim=0)  # no position within a random word is special
    assert float(columns.min()) > 0.05
    assert float(columns.max()) < 0.16
    ones = torch.ones(3)
    assert drop(ones, None) is ones


def test_masks_in_bfloat16_keep_the_mean_too() -> None:
    pool = Masks(0.1, torch.Generator().manual_seed(6))
    pool.refresh(torch.bfloat16)
    mask = pool.take(torch.ones(1001, 333))
    assert mask.dtype == torch.bfloat16
    assert set(mask.flatten().tolist()) == {0, pool.scale}
    assert float((mask == 0).float().mean()) == pytest.approx(0.1, abs=0.004)
    assert pool.scale * float((mask != 0).float().mean()) == pytest.approx(1, abs=0.001)
    pool.reserve(3_000_000)  # a larger pool has the same precision
    assert pool.take(mask).dtype == torch.bfloat16


def test_masks_differ_from_use_to_use_and_from_batch_to_batch() -> None:
    pool, ones = masks(0.5, 7), torch.ones(1000)
    first, second = drop(ones, pool), drop(ones, pool)
    pool.refresh()
    third = drop(ones, pool)
    for one, other in ((first, second), (first, third), (second, third)):
        assert float((one == other).float().mean()) == pytest.approx(0.5, abs=0.06)  # independent
    assert torch.equal(first, drop(ones, masks(0.5, 7)))  # and repeatable


def test_a_tensor_larger_than_the_pool_gets_a_larger_pool() -> None:
    kept = drop(torch.ones(3_000_000), masks(0.1, 8))
    assert float((kept == 0).float().mean()) == pytest.approx(0.1, abs=0.001)
    halves = (kept[:1_500_000] == 0) & (kept[1_500_000:] == 0)
    assert float(halves.float().mean()) == pytest.approx(0.01, abs=0.001)


def test_fused_forms_equal_plain_ones_with_the_same_mask() -> None:
    x = torch.randn(20, 30, generator=torch.Generator().manual_seed(9)).requires_grad_()
    mask = masks(0.3, 10).take(x)
    for fused, plain_form in (
        (relu_dropped(x, masks(0.3, 10)), F.relu(x) * mask),
        (add_dropped(x, 2 * x, masks(0.3, 10)), x + 2 * x * mask),
    ):
        assert torch.allclose(fused, plain_form)
        weight = torch.arange(600.0).view(20, 30)
        (got,) = torch.autograd.grad((fused * weight).sum(), x)
        (expected,) = torch.autograd.grad((plain_form * weight).sum(), x)
        assert torch.allclose(got, expected)
