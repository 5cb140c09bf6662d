"""The scale: the newest events are kept, names and values are checked, and it is described in words."""

from __future__ import annotations

import numpy as np
import pytest

from felrec.data.synthetic import synthetic_log
from felrec.errors import ConfigError
from felrec.experiments import Data, Scale, read_scale

LOG = synthetic_log(1_000, n_users=40, n_items=40, seed=1).log


@pytest.mark.parametrize(("events", "left"), [(0.25, 250), (300, 300), (1, 1_000), (5_000, 1_000)])
def test_the_newest_events_are_kept(events: float, left: int) -> None:
    cut = Scale(events=events).cut(LOG)
    assert len(cut) == left
    np.testing.assert_array_equal(cut.times, LOG.times[-left:])
    assert cut.item_ids.ids(cut.items) == LOG.item_ids.ids(LOG.items[-left:])
    assert cut.users.max() + 1 == cut.n_users  # rows are renumbered


def test_the_same_log_cut_in_two_ways_has_two_names() -> None:
    assert Data.of("a", LOG, Scale()).key != Data.of("a", LOG, Scale(events=0.5)).key


@pytest.mark.parametrize("wrong", ["events", "hours=3", "events=0", "events=many", "trained_share=2", "minutes=-1"])
def test_invalid_scales_are_errors(wrong: str) -> None:
    with pytest.raises(ConfigError):
        read_scale([wrong])


def test_the_description_names_everything() -> None:
    said = Scale(events=1_000_000, epochs=5, trained_share=0.25, minutes=20).describe()
    assert said.startswith("the newest 1,000,000 of the events, 20 CPU minutes")
    assert "at most 5 epochs" in said
    assert "gradients from 25 % of the events" in said
