"""The copy of an encoder in bfloat16: when it is made, what it computes, and what it says where it is slow."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from felrec.model.kernels import bfloat16
from felrec.model.kernels.bfloat16 import ShortCopy
from felrec.model.paper.encoder import Encoder, initialise


@pytest.fixture
def encoder() -> Encoder:
    built = Encoder(width=16, layers=2, heads=2, feed_forward=32, history_length=6)
    initialise(built, torch.Generator().manual_seed(0))
    return built.eval()


@pytest.fixture(autouse=True)
def _ask_the_processor_again() -> Iterator[None]:
    for asked in (bfloat16.is_native, bfloat16._warn_if_slow):
        asked.cache_clear()
    yield
    for asked in (bfloat16.is_native, bfloat16._warn_if_slow):
        asked.cache_clear()


def test_it_encodes_almost_as_the_original(encoder: Encoder) -> None:
    vectors = torch.randn(8, 6, 16, generator=torch.Generator().manual_seed(1))
    mask = torch.ones(8, 6, dtype=torch.bool)
    mask[:4, :2] = False
    with torch.no_grad():
        found, wanted = ShortCopy(encoder).get()(vectors, mask, 0), encoder(vectors, mask, 0)
    assert found.dtype == torch.float32
    assert not torch.equal(found, wanted)
    assert float(F.cosine_similarity(found, wanted, dim=1).min()) > 0.999


def test_it_is_kept_until_a_weight_changes(encoder: Encoder) -> None:
    short = ShortCopy(encoder)
    first = short.get()
    assert short.get() is first
    with torch.no_grad():
        encoder.output.bias.add_(1)
    second = short.get()
    assert second is not first
    assert torch.equal(second.output.bias, encoder.output.bias)
    encoder.load_state_dict(first.state_dict())
    assert torch.equal(short.get().output.bias, first.output.bias)


def test_a_processor_without_the_instructions_is_reported_once(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    short = ShortCopy(encoder)
    with caplog.at_level(logging.WARNING):
        short.get()
        short.get()
    assert [record.message for record in caplog.records] == [
        "this processor has no instructions for bfloat16, so it is slower than float32"
    ]


def test_a_processor_with_them_is_not(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    ShortCopy(encoder).get()
    assert not caplog.records
