"""Comparing models: settings go where they belong, nothing is done twice, differences are right."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from felrec import comparison, runs
from felrec.comparison import Silent
from felrec.comparison.stopwatch import read_cost, timed
from felrec.comparison.trials import Trial, evaluate_trial, train_trial
from felrec.data.split import PARTITIONS, split_log
from felrec.data.synthetic import synthetic_log
from felrec.data.tags import read_tags
from felrec.errors import CheckpointError, ConfigError

SPLIT = split_log(synthetic_log(1_000, n_users=40, n_items=40, seed=2).log)
TINY = {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "history_length": 4, "queue_size": 16, "epochs": 1}
MODELS = ["felrec-q", "popularity", "decayed-popularity"]


def test_settings_go_to_the_models_that_have_them() -> None:
    divided = comparison.settings_by_model(MODELS, {"width": "8", "heads": "2", "half_life": "30", "seed": "1"})
    assert divided == {
        "felrec-q": {"width": "8", "heads": "2", "seed": "1"},
        "popularity": {"seed": "1"},
        "decayed-popularity": {"half_life": "30", "seed": "1"},
    }


def test_a_setting_that_no_model_has_is_an_error() -> None:
    with pytest.raises(ConfigError, match="'width'"):
        comparison.settings_by_model(["popularity"], {"width": 8})


def test_a_recipe_is_for_models_that_have_it() -> None:
    divided = comparison.settings_by_model(["felrec-q", "popularity"], {"recipe": "ordinary"})
    assert divided == {"felrec-q": {"recipe": "ordinary"}, "popularity": {}}
    with pytest.raises(ConfigError, match="none of popularity has a setting 'recipe'"):
        comparison.settings_by_model(["popularity"], {"recipe": "ordinary"})


def test_differences_are_against_the_best_baseline(tmp_path: Path) -> None:
    result = comparison.compare(SPLIT, MODELS, tmp_path, TINY)
    for metric in ("hr@10", "mrr"):
        means = {report.model: report.metric(metric) for report in result.reports}
        best = max(("popularity", "decayed-popularity"), key=means.__getitem__)
        found = {d.model: d for d in result.differences if d.metric == metric and d.partition == "total"}
        assert set(found) == set(MODELS) - {best}
        for model, difference in found.items():
            assert difference.baseline == best
            assert difference.interval.difference == pytest.approx(means[model] - means[best])
            assert difference.interval.low <= difference.interval.difference <= difference.interval.high


def test_partitions_with_enough_events_are_compared_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felrec.comparison.comparing.ENOUGH", 20)
    result = comparison.compare(SPLIT, MODELS, tmp_path, TINY)
    events = {name: result.reports[0].partitions[name]["events"] for name in PARTITIONS}
    large = {name for name, n in events.items() if n >= 20}
    assert large
    assert large < set(PARTITIONS)
    assert {d.partition for d in result.differences} == {"total", *large}
    reports = {report.model: report for report in result.reports}
    for d in result.differences:
        theirs = [reports[name].metric(d.metric, d.partition) for name in ("popularity", "decayed-popularity")]
        ours = reports[d.model].metric(d.metric, d.partition)
        assert d.interval.difference == pytest.approx(ours - max(theirs))


def test_without_a_simple_baseline_there_are_no_differences(tmp_path: Path) -> None:
    assert comparison.compare(SPLIT, ["felrec-q"], tmp_path, TINY).differences == []


def test_resume_goes_on_at_the_model_it_was_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = comparison.compare(SPLIT, MODELS, tmp_path / "whole", TINY)
    out = tmp_path / "broken"
    evaluate, evaluated = runs.evaluate, []

    def interrupted(model, *args, **kwargs):  # type: ignore[no-untyped-def]
        if model.name == "popularity" and "popularity" not in evaluated:
            evaluated.append(model.name)
            raise KeyboardInterrupt
        evaluated.append(model.name)
        return evaluate(model, *args, **kwargs)

    monkeypatch.setattr(runs, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        comparison.compare(SPLIT, MODELS, out, TINY)
    with pytest.raises(CheckpointError, match="--resume"):
        comparison.compare(SPLIT, MODELS, out, TINY)
    resumed = comparison.compare(SPLIT, MODELS, out, TINY, resume=True)
    assert evaluated == ["felrec-q", "popularity", "popularity", "decayed-popularity"]
    for ours, theirs in zip(resumed.reports, whole.reports, strict=True):
        assert ours.partitions == theirs.partitions
        np.testing.assert_array_equal(ours.results.rank, theirs.results.rank)
        np.testing.assert_array_equal(ours.results.item_events, theirs.results.item_events)
    assert resumed.differences == whole.differences


def test_written_files(tmp_path: Path) -> None:
    result = comparison.compare(SPLIT, ["popularity", "decayed-popularity"], tmp_path)
    files = comparison.write(result, tmp_path)
    assert [file.name for file in files] == ["comparison.json", "comparison.png", "comparison.svg"]
    told = json.loads(files[0].read_text())
    assert told["models"]["popularity"]["partitions"]["total"]["events"] == 100
    assert {difference["verdict"] for difference in told["differences"]} <= {"better", "worse", "not clear"}


def test_a_row_is_tested_once_in_each_way(tmp_path: Path) -> None:
    row = Trial("q", "felrec-q", TINY)
    ways = [
        row,
        replace(row, name="q-reset", cache="reset"),
        replace(row, name="q-paper", protocol="paper"),
        replace(row, name="q-nn", scoring={"neighbours": 3}),
        replace(row, name="q-all", exclude_seen="no"),
    ]
    model = train_trial(row, SPLIT, tmp_path, Silent(), device="cpu", resume=False)
    first = [evaluate_trial(way, model, SPLIT, tmp_path, Silent(), device="cpu") for way in ways]
    again = [evaluate_trial(way, model, SPLIT, tmp_path, Silent(), device="cpu") for way in ways]
    for one, other in zip(first, again, strict=True):
        assert one.cpu_seconds == other.cpu_seconds > 0  # read, not measured again
        assert one.report.to_json() == other.report.to_json()
    assert [tested.report.model for tested in again] == ["q", "q-reset", "q-paper", "q-nn", "q-all"]
    assert [tested.report.cache for tested in again] == ["kept", "reset", "kept", "kept", "kept"]
    assert again[2].report.protocol == "paper"
    assert sorted(file.name for file in tmp_path.glob("report*")) == [
        *("report-exclude-seen=no.json", "report-neighbours=3.json", "report-paper.json", "report-reset.json"),
        "report.json",
    ]


def test_cpu_time_is_added_up_over_processes(tmp_path: Path) -> None:
    events = len(SPLIT.train)
    for done in (1, 2):
        with Silent().training("q", tmp_path) as listener, timed(tmp_path, listener) as watch:
            sum(range(100_000))
            watch.step(epoch=0, step=1, steps=1, events=events, loss=0.0, lr=0.1)
            sum(range(100_000))
            watch.validated(epoch=0, step=1, steps=1, metrics={}, best=True)
        cost = read_cost(tmp_path)
        assert cost["train_events"] == done * events
        assert cost["train_seconds"] > 0
        assert cost["validation_seconds"] > 0


def test_lists_are_stored_with_a_report(tmp_path: Path) -> None:
    tags = read_tags({item: ["x", str(item % 4)] for item in range(40)})
    models = ["popularity", "decayed-popularity"]
    first = comparison.compare(SPLIT, models, tmp_path, k=(5, 10), tags=tags)
    again = comparison.compare(SPLIT, models, tmp_path, k=(5, 10), tags=tags, resume=True)
    for one, other in zip(first.reports, again.reports, strict=True):
        assert one.seconds == other.seconds  # read, not computed again
        assert one.k == other.k == (5, 10)
        assert one.lists == other.lists
        assert {"coverage@5", "diversity@10"} <= set(one.lists)
    longer = comparison.compare(SPLIT, models, tmp_path, k=(20,), resume=True)
    assert "coverage@20" in longer.reports[0].lists
    assert not comparison.compare(SPLIT, models, tmp_path, resume=True).reports[0].lists
