"""Compute the blocks of an encoder in bfloat16, where a processor multiplies twice as fast as in float32."""

from __future__ import annotations

import logging
import platform
from copy import deepcopy
from functools import cache

import torch
from torch import nn

from felrec.model.paper.encoder import Encoder

_log = logging.getLogger(__name__)


class ShortCopy:
    """A copy of an encoder whose blocks compute in bfloat16, made again whenever the weights have changed."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: tuple[list[tuple[int, int]], Encoder] | None = None

    def get(self) -> Encoder:
        """The copy of the weights as they are now."""
        _warn_if_slow()
        now = [(weight.data_ptr(), weight._version) for weight in self._encoder.parameters()]
        kept = self._kept
        if kept is None or kept[0] != now:
            self._kept = kept = now, _shortened(self._encoder)  # one assignment: several threads may score
        return kept[1]


def _shortened(encoder: Encoder) -> Encoder:
    """A copy with the linear layers of the blocks in bfloat16; LayerNorm reads and writes it with its own weights."""
    short = deepcopy(encoder)
    for part in short.blocks.modules():
        if isinstance(part, nn.Linear):
            part.to(torch.bfloat16)
    return short


@cache
def is_native() -> bool:
    """Whether this processor has instructions for bfloat16."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported())  # torch's other check counts AVX-512 without them too


@cache
def _warn_if_slow() -> None:
    """One line for the whole process."""
    if not is_native():
        _log.warning("this processor has no instructions for bfloat16, so it is slower than float32")
