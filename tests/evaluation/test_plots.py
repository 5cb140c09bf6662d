"""Plots: the numbers that are drawn, the files, and what is said where matplotlib is missing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import needs
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.errors import ConfigError
from felrec.evaluation import plots
from felrec.evaluation.report import Report, evaluate
from felrec.registry import model_kind

needs.package("matplotlib")


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    split = split_log(synthetic_log(2_000, n_users=50, n_items=60, seed=1).log)
    kinds = [model_kind(name) for name in ("popularity", "decayed-popularity")]
    return [
        evaluate(kind.build(kind.settings(), 0, "cpu", split.sizes), split, model=kind.name, cache="reset")
        for kind in kinds
    ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every figure that is saved."""
    figures: list[Any] = []
    save = plots.save_figure

    def keep(figure: Any, path: Path) -> None:
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(plots, "save_figure", keep)
    return figures


def test_partition_bars_are_the_reports_numbers(reports: list[Report], drawn: list[Any], tmp_path: Path) -> None:
    plots.plot_partitions(reports, tmp_path / "new folder" / "p.png")
    left, right = drawn[0].axes
    for axes, metric in ((left, "hr@10"), (right, "rank")):
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == [report.partitions[name][metric] for report in reports for name in plots.SHOWN]
    assert (tmp_path / "new folder" / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_what_a_model_cannot_is_a_dash(reports: list[Report], drawn: list[Any], tmp_path: Path) -> None:
    partial = replace(reports[0], represents=frozenset({"observed"}))
    plots.plot_partitions([partial], tmp_path / "p.svg")
    assert [text.get_text() for text in drawn[0].axes[0].texts].count("—") == 2
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_the_published_protocol_is_labelled(reports: list[Report], drawn: list[Any], tmp_path: Path) -> None:
    plots.plot_partitions([replace(reports[0], protocol="paper")], tmp_path / "p.png")
    assert "leaks" in drawn[0].get_suptitle()


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, reports: list[Report], tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match=r"pip install .*'\.\[plots\]'"):
        plots.plot_partitions(reports, tmp_path / "p.png")
