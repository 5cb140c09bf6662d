"""The published numbers are consistent with one another, which catches typing errors."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from felrec.data.split import PARTITIONS
from felrec.experiments.ablation import VARIANTS
from felrec.experiments.paper import published
from felrec.experiments.runner import ORDER

DOCUMENT = tomllib.loads((files("felrec.experiments") / "paper.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("log", ["movielens-25m", "twitch"])
def test_totals_are_the_means_of_the_partitions(log: str) -> None:
    shares = DOCUMENT[log]["shares"]
    assert sum(shares.values()) == pytest.approx(1)
    for name, row in published(log).rows.items():
        shown = [partition for partition in PARTITIONS if partition in row]
        weight = sum(shares[partition] for partition in shown)
        for at, tolerance in ((0, 0.0011), (1, 0.0002)):
            mean = sum(shares[partition] * row[partition][at] for partition in shown) / weight
            assert row["total"][at] == pytest.approx(mean, abs=tolerance), (name, at)


def test_every_row_is_one_of_ours() -> None:
    ours = {*ORDER, "felrec-q-reset", "felrec-q-zero"}
    for log in ("movielens-25m", "twitch"):
        assert set(published(log).rows) <= ours
    assert set(published("ablation").rows) == {*(name for name, _, _ in VARIANTS), "felrec-q-nn"}


def test_the_ablation_repeats_the_table() -> None:
    for name in ("felrec-q", "felrec-p"):
        assert published("ablation").pair(name, "total") == published("movielens-25m").pair(name, "total")


def test_what_a_model_cannot_represent_is_missing() -> None:
    assert published("twitch").pair("sasrec", "new_items") is None
    assert published("twitch").pair("popularity", "total") is None
