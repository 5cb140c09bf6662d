"""Random FELRec-S models and logs, to compare the compiled kernels with the code in numpy and torch."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st

from felrec.data.events import Events
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.signals.signal_set import SIGNALS

USERS, ITEMS = 6, 30  # of random states; some rows have no events


@st.composite
def models(draw: st.DrawFn) -> FELRecS:
    """With any signals and small sizes; random weights, because those of a new model say nothing of most features."""
    signals = draw(st.sets(st.sampled_from(SIGNALS), min_size=1))
    if signals & {"profile", "hit-rates"}:
        signals |= {"trend", "together"}
    if "sequence" in signals:
        signals |= {"trend"}
    width, heads = draw(st.sampled_from([(6, 2), (16, 4), (40, 1)]))
    sizes = {"own_items": 3, "near_items": 4, "next_items": 2, "ahead_items": 3}
    sizes["hidden"] = draw(st.sampled_from([3, 16, 40]))
    sizes["sequence_width"] = draw(st.sampled_from([8, 40]))
    chosen = {"layers": draw(st.integers(1, 2)), "members": draw(st.integers(1, 3)), "feed_forward": 20}
    made = felrec_s(
        FELRecSSettings(signals=sorted(signals), width=width, heads=heads, history_length=5, **sizes, **chosen)
    )
    return randomised(made, draw(st.integers(0, 99)))


def randomised(made: FELRecS, seed: int) -> FELRecS:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return made


@st.composite
def logs(draw: st.DrawFn) -> Events:
    count = draw(st.integers(0, 150))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    times = np.sort(random.integers(1_000, size=count) * 30.0)
    weights = draw(st.sampled_from([None, [np.nan, 1, 0.3, 0, -0.5, -2], [np.nan], [0]]))
    return Events.of(
        random.integers(USERS, size=count),
        random.integers(ITEMS, size=count),
        times,
        None if weights is None else random.choice(weights, count),
    )
