"""Every experiment end to end: its files, its numbers beside the paper's, and its scale."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import needs
from felrec.data.log import InteractionLog
from felrec.errors import ConfigError, DataError
from felrec.experiments import EXPERIMENTS, Data, ExperimentRunner, Scale, reproduce
from felrec.experiments.ablation_ordinary import LEFT_OUT as LEFT_OUT_OF_RECIPE
from felrec.experiments.ablation_s import VARIANTS as VARIANTS_OF_S
from felrec.experiments.cold_start import TOP, cold_start
from felrec.experiments.identity import VARIANTS, spread

from .conftest import MODELS

needs.package("openTSNE")
NAMES = list(EXPERIMENTS)


@pytest.fixture(scope="session")
def made(runs: Path, log: Data, other: Data, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All experiments, one after another, on the same runs."""
    from .conftest import SCALE, TINY

    folders = {}
    for name, experiment in EXPERIMENTS.items():
        models = ("felrec-q",) if name == "zero-shot" else MODELS
        runner = ExperimentRunner(runs, SCALE, models, TINY)
        several = experiment.logs == "several"
        out = tmp_path_factory.mktemp(name)
        logs = [log, other] if several else [log]
        reproduce(name, runner, logs, out, other if name == "table-movielens" else None)
        folders[name] = out
    return folders


def page(made: dict[str, Path], name: str) -> str:
    return (made[name] / f"{name}.md").read_text()


def told(made: dict[str, Path], name: str, kind: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made[name] / f"{name}{kind}.json").read_text())
    return found


def lines(text: str, start: str) -> list[list[str]]:
    """The rows of the first table whose header starts with `start`."""
    found: list[list[str]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if (line.startswith(f"| {start} |") and not found) or (found and line.startswith("|")):
            found.append(cells)
        elif found:
            break
    return [found[0], *found[2:]]


@pytest.mark.parametrize("name", NAMES)
def test_all_files_are_written(made: dict[str, Path], name: str) -> None:
    out = made[name]
    assert (out / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (out / f"{name}.svg").read_text()
    assert f"]({name}.png)" in page(made, name)


@pytest.mark.parametrize("name", NAMES)
def test_log_and_scale_are_stated(made: dict[str, Path], name: str, log: Data) -> None:
    text, scale = page(made, name), told(made, name)["scale"]
    assert "the newest 80 % of the events, 1 epochs, gradients from 50 %" in text
    assert scale["text"] in text
    assert (scale["events"], scale["epochs"], scale["trained_share"]) == (0.8, 1, 0.5)
    assert "alpha (1,200 events" in text
    assert log.split.log.fingerprint in [each["fingerprint"] for each in told(made, name)["logs"]]


@pytest.mark.parametrize("name", NAMES)
def test_the_config_is_exact(made: dict[str, Path], name: str) -> None:
    config = told(made, name, ".config")
    assert config["felrec"]
    assert config["machine"]["cores"]
    assert config["date"][:2] == "20"
    assert config["seconds"] > 0
    for row in config["rows"]:
        if row["training"]:
            assert (row["training"]["epochs"], row["training"]["trained_share"]) == (1, 0.5)
            assert row["plan"]["epochs"] == 1
            assert row["settings"]["width"] == 8


def test_the_table_says_what_the_json_says(made: dict[str, Path]) -> None:
    head, *rows = lines(page(made, "table-movielens"), "model")
    reports = {row["model"]: row for row in told(made, "table-movielens")["rows"]}
    assert [row[0] for row in rows] == list(reports)
    assert list(reports) == [*MODELS[:2], "sasrec-ce", *MODELS[2:5], "felrec-q-reset", "felrec-q-zero", "felrec-p"]
    names = ("observed", "new_users", "new_items", "total", "total_representable")
    at = (3, 5, 7, 9, 10)
    assert [head[place].split(" (")[0] for place in at] == [
        *("observed", "new users", "new items"),
        *("total", "representable"),
    ]
    for row in rows:
        for partition, place in zip(names, at, strict=True):
            values = reports[row[0]]["partitions"][partition]
            numbers = [values[metric] for metric in ("rank", "hr@10_sampled", "hr@10")]
            assert row[place] == ("—" if None in numbers else " / ".join(f"{value:.3f}" for value in numbers))


def test_the_papers_numbers_are_beside_ours(made: dict[str, Path]) -> None:
    head, *rows = lines(page(made, "table-movielens"), "model")
    by_name = {row[0]: row for row in rows}
    assert [head[place] for place in (2, 4, 6, 8, 11)] == [*["paper"] * 4, "total (paper)"]
    assert by_name["felrec-q"][2] == "0.48M"
    assert by_name["felrec-q"][8] == "0.102 / 0.7939"  # new items
    assert by_name["felrec-q-zero"][11] == "0.098 / 0.7025"
    assert by_name["sasrec"][6] == "0.026 / 0.9388"  # new users
    assert by_name["sasrec"][8] == "—"
    assert by_name["popularity"][2] == "—"
    assert by_name["sasrec-ce"][2] == "—"  # not in the paper
    assert by_name["sasrec-ce"][3] != by_name["sasrec"][3]
    twitch = {row[0]: row for row in lines(page(made, "table-twitch"), "model")[1:]}
    assert twitch["felrec-p"][4] == "0.019 / 0.9460"  # observed
    assert "MovieLens 25M" in page(made, "table-movielens")
    assert "on Twitch" in page(made, "table-twitch")


def test_without_another_log_the_zero_row_is_omitted_with_a_note(made: dict[str, Path]) -> None:
    assert not any(row["model"].endswith("-zero") for row in told(made, "table-twitch")["rows"])
    assert "omitted, because no other log was given" in page(made, "table-twitch")


def test_each_model_is_trained_once_for_all_experiments(made: dict[str, Path], runs: Path, log: Data) -> None:
    folders = sorted(folder.name.split(",")[0] for folder in (runs / log.key).iterdir())
    ablated = [*["felrec-q"] * 4, "felrec-p", *["felrec-s"] * len(VARIANTS_OF_S)]  # -NN is not trained
    ablated += ["felrec-q", "felrec-p"] * len(LEFT_OUT_OF_RECIPE) + ["felrec-q"] * len(VARIANTS)
    assert folders == sorted([*MODELS, "sasrec", *ablated])  # SASRec also with cross-entropy


def test_costs(made: dict[str, Path]) -> None:
    costs = told(made, "table-movielens")["costs"]
    assert "felrec-q-reset" not in costs  # the same run as felrec-q
    for name, cost in costs.items():
        assert cost["train_seconds_per_million"] > 0
        assert cost["cpu_minutes"] > 0
        assert cost["epochs"] == (None if "popularity" in name else 1)
    written = [line for line in page(made, "table-movielens").splitlines() if line.startswith("| sasrec | 1 (1)")]
    assert f"{costs['sasrec']['train_seconds_per_million']:,.1f}" in written[0]


def test_ablations_differ_in_one_setting(made: dict[str, Path]) -> None:
    rows = {row["name"]: row for row in told(made, "ablation", ".config")["rows"]}
    plain = rows["felrec-q"]["settings"]
    changed = {
        name: {key for key in plain if row["settings"][key] != plain[key]}
        for name, row in rows.items()
        if name.startswith("felrec-q")
    }
    assert changed == {
        "felrec-q": set(),
        "felrec-q-ln": {"normalisation"},
        "felrec-q-nomlp": {"projection"},
        "felrec-q-sharemlp": {"share_projections"},
        "felrec-q-notype": {"type_embedding"},
        "felrec-q-nn": {"neighbours"},
    }
    assert rows["felrec-q-nn"]["run"] == rows["felrec-q"]["run"]
    table = {row[0]: row for row in lines(page(made, "ablation"), "model")[1:]}
    assert table["felrec-q-nomlp"][4] == "0.163 / 0.1234"
    totals = {row["model"]: row["partitions"]["total"] for row in told(made, "ablation")["rows"]}
    assert table["felrec-q-ln"][3].startswith(f"{totals['felrec-q-ln']['rank']:.3f} / ")


def test_parts_of_felrec_s_differ_in_one_setting(made: dict[str, Path]) -> None:
    rows = {row["name"]: row["settings"] for row in told(made, "ablation-s", ".config")["rows"]}
    whole = rows["the default"]
    for name, variant in VARIANTS_OF_S:
        assert {key for key in whole if rows[name][key] != whole[key]} == set(variant)
    ranks = {row["partitions"]["total"]["rank"] for row in told(made, "ablation-s")["rows"]}
    assert len(ranks) > len(VARIANTS_OF_S) / 2  # most of them show, even on a tiny log


def test_rows_of_the_recipe_differ_in_what_is_left_out(made: dict[str, Path]) -> None:
    config = told(made, "ablation-ordinary", ".config")["rows"]
    rows = {row["name"]: {**row["settings"], **row["training"]} for row in config}
    for model in ("felrec-q", "felrec-p"):
        whole = rows[f"{model}: nothing left out"]
        assert (whole["cache"], whole["negatives"]) == ("seeded", "catalogue")
        for name, left_out in LEFT_OUT_OF_RECIPE:
            row = rows[f"{model}: {name}"]
            assert {key for key in whole if row[key] != whole[key]} == set(left_out)


def test_identity_tests_each_variant_from_both_caches(made: dict[str, Path]) -> None:
    rows = {row["variant"]: row for row in told(made, "identity")["rows"]}
    assert list(rows) == [name for name, _ in VARIANTS]
    for row in rows.values():
        assert {start: report["cache"] for start, report in row["reports"].items()} == {
            "kept": "kept",
            "reset": "reset",
        }
    noisy, quiet = rows["zero cache, dropout 0.1"]["spread"], rows["zero cache, no dropout"]["spread"]
    assert noisy["kept"] > 2 * noisy["reset"]  # most of what tells items apart is the noise of training
    assert noisy["kept"] > 2 * quiet["kept"]


def test_spread_is_the_mean_over_pairs() -> None:
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    assert spread(vectors) == pytest.approx(1 - (0 + 0.6 + 0.8) / 3)


def test_cold_start_needs_new_items(runner: ExperimentRunner) -> None:
    seconds = range(600)
    frame = pl.DataFrame({"user": [n % 20 for n in seconds], "item": [n % 7 for n in seconds], "timestamp": seconds})
    fixed = Data.of("fixed", InteractionLog.from_frame(frame), Scale())
    with pytest.raises(DataError, match="the test part has no events of new items"):
        cold_start(runner, [fixed], None)


def test_cold_start_reports_when_new_items_reach_the_top(made: dict[str, Path]) -> None:
    curves = told(made, "cold-start")["curves"]
    assert [curve["model"] for curve in curves] == ["popularity", "decayed-popularity", "felrec-q", "felrec-p"]
    for curve in curves:
        last = curve["points"][-1]
        assert (curve["events_until_top_tenth"] is None) == (last["rank"] > TOP)
        assert curve["points"][0]["rank"] == 1.0  # before its first event no model can recommend it
    head, *rows = lines(page(made, "cold-start"), "earlier events of the item")
    assert head[-2:] == ["top 10 %", "hr@10"]
    assert rows[1][-3] == f"{curves[1]['points'][-1]['rank']:.3f}"


def test_over_time_counts_every_event_that_a_model_can_represent(made: dict[str, Path], log: Data) -> None:
    curves = told(made, "over-time")["curves"]
    events = {(c["model"], c["group"]): sum(point["events"] for point in c["points"]) for c in curves}
    assert events["felrec-q", "I"] + events["felrec-q", "O+U"] == len(log.split.test)
    assert ("sasrec", "I") not in events
    assert events["sasrec", "O+U"] == events["felrec-q", "O+U"]
    first = curves[[c["model"] for c in curves].index("felrec-q")]["points"][0]
    assert (first["bin"], first["rank"]) == (0, 1.0)  # an item's first event is a miss
    head, *rows = lines(page(made, "over-time"), "earlier events of the item")
    column = head.index("felrec-q I, rank (events)")
    assert rows[0][column] == f"1.000 ({first['events']})"


def test_popularity_bias_has_a_row_for_every_model(made: dict[str, Path]) -> None:
    rows = told(made, "popularity-bias")["rows"]
    assert list(rows) == ["what users took", *MODELS]
    for row in rows.values():
        assert sum(row["deciles"]) == pytest.approx(1)
        assert 0 <= row["gini"] < 1
        assert 0 < row["coverage"] <= 1
    assert rows["popularity"]["deciles"][0] > rows["what users took"]["deciles"][0]
    table = {row[0]: row for row in lines(page(made, "popularity-bias"), "model")[1:]}
    for name, row in rows.items():
        assert table[name][1:] == [f"{v:.3f}" for v in (row["gini"], row["coverage"], *row["deciles"])]
    assert (made["popularity-bias"] / "popularity-bias-2.svg").exists()


def test_zero_shot_has_every_pair(made: dict[str, Path]) -> None:
    rows = told(made, "zero-shot")["rows"]
    ways = {(row["trained_on"], row["tested_on"], row["cache"]) for row in rows}
    assert ways == {
        (source, target, cache)
        for source in ("alpha", "beta")
        for target in ("alpha", "beta")
        for cache in ("kept", "reset", "empty")
        if cache != "kept" or source == target
    }
    text = page(made, "zero-shot")
    for row in rows:
        assert f"| {row['row']} |" in text
        assert f"{row['partitions']['total']['rank']:.3f} / " in text
    assert "| felrec-q-zero | 0.098 / 0.7025 | 0.053 / 0.8865 |" in text


def test_protocols_show_the_leak(made: dict[str, Path]) -> None:
    rows = told(made, "protocols")["rows"]
    assert [row["model"] for row in rows] == list(MODELS)
    text = page(made, "protocols")
    for row in rows:
        for metric, leak in row["leak"].items():
            assert leak == pytest.approx(row["paper"][metric] - row["online"][metric])
        numbers = f"| {row['online']['rank']:.3f} | {row['paper']['rank']:.3f} | {row['leak']['rank']:+.3f} |"
        assert f"| {row['model']} {numbers}" in text
    popular = rows[MODELS.index("popularity")]
    assert popular["leak"]["rank"] < 0  # the paper's protocol does not count first events as misses


def test_a_second_run_gives_the_same_page(
    made: dict[str, Path], runs: Path, log: Data, tmp_path: Path, runner: ExperimentRunner
) -> None:
    reproduce("protocols", runner, [log], tmp_path)
    assert re.sub("20..-..-..", "", (tmp_path / "protocols.md").read_text()) == re.sub(
        "20..-..-..", "", page(made, "protocols")
    )


def test_the_number_of_logs_is_checked(runner: ExperimentRunner, log: Data, other: Data, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exactly one log"):
        reproduce("ablation", runner, [log, other], tmp_path)
    with pytest.raises(ConfigError, match="two logs"):
        reproduce("zero-shot", runner, [log], tmp_path)
    with pytest.raises(ConfigError, match="table-twitch"):
        reproduce("table-netflix", runner, [log], tmp_path)


def test_zero_shot_refuses_models_that_do_not_transfer(
    runner: ExperimentRunner, log: Data, other: Data, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="bpr-mf has no weights that transfer"):
        reproduce("zero-shot", runner, [log, other], tmp_path)


def test_settings_that_differ_from_the_defaults_are_stated(made: dict[str, Path]) -> None:
    assert "* settings that differ from the defaults, for every model that has them: `" in page(made, "ablation")
    assert "`width=8`" in page(made, "ablation")


def test_unsuitable_models_are_refused_before_training(tmp_path: Path, log: Data) -> None:
    for name, model, says in [
        ("cold-start", "sasrec", "sasrec cannot represent new items"),
        ("ablation", "felrec-s", "need felrec-q or felrec-p"),
    ]:
        with pytest.raises(ConfigError, match=says):
            reproduce(name, ExperimentRunner(tmp_path / "runs", models=(model,)), [log], tmp_path / name)
    assert not (tmp_path / "runs").exists()


def test_a_partition_without_events_has_no_leak(tmp_path: Path) -> None:
    """BPR-MF represents observed users only; here all users of the test part are new."""
    rows = pl.DataFrame({"user": range(300), "item": [n % 7 for n in range(300)], "timestamp": range(300)})
    new = Data.of("new", InteractionLog.from_frame(rows), Scale())
    runner = ExperimentRunner(tmp_path / "runs", Scale(epochs=1), ("bpr-mf", "popularity"))
    reproduce("protocols", runner, [new], tmp_path / "out")
    assert "| bpr-mf | — | — | — |" in (tmp_path / "out" / "protocols.md").read_text()
