"""The other commands: models, datasets, inspect, compare, recommend."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import Result

from felrec.data.reading.datasets import DATASETS
from felrec.registry import MODELS

from .conftest import TINY

Invoke = Callable[..., Result]


def test_models(invoke: Invoke) -> None:
    described = json.loads(invoke("models", "--json").stdout)
    assert [model["name"] for model in described] == list(MODELS)
    assert {model["name"]: model["parameters"] for model in described}["felrec-q"] == 479_488
    row = next(line for line in invoke("models").stdout.splitlines() if line.startswith("felrec-p "))
    assert row.split()[-4:] == ["yes", "yes", "yes", "580,096"]


def test_datasets(invoke: Invoke) -> None:
    lines = invoke("datasets").stdout.splitlines()[1 : 1 + len(DATASETS)]
    for (name, dataset), line in zip(DATASETS.items(), lines, strict=True):
        assert line.startswith(name + " ")
        assert dataset.homepage in line
        assert dataset.licence in line
        assert f"{dataset.rows:,}" in line


def test_without_a_published_checksum_the_sha256_is_printed(invoke: Invoke, tmp_path: Path) -> None:
    folder = tmp_path / "jodie-mooc"
    folder.mkdir()
    (folder / "mooc.csv").write_bytes(b"abc")  # already there, so nothing is downloaded
    shown = invoke("datasets", "fetch", "jodie-mooc", "--to", tmp_path).stdout
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in shown


def test_fetch_says_where_the_log_is(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(name: str, to: Path, progress: Callable[[int, int | None], None], sha256: str | None) -> Path:
        progress(1, None)
        asked.append((name, to))
        return to / name / "u.data"

    # By module: in `felrec.data` the name `fetch` is the function.
    monkeypatch.setattr(sys.modules["felrec.data.reading.fetch"], "fetch", fetch)
    result = invoke("datasets", "fetch", "ml-100k", "--to", tmp_path)
    assert asked == [("ml-100k", tmp_path)]
    assert f"felrec inspect {tmp_path}/ml-100k/u.data" in result.stdout


def test_inspect(invoke: Invoke, log: Path) -> None:
    about = json.loads(invoke("inspect", log, "--json").stdout)
    assert about["rows"] == 1_500
    lines = dict(line.split("  ", 1) for line in invoke("inspect", log).stdout.splitlines())
    assert lines["rows"].strip() == "1,500"
    assert f"{100 * about['ties']:.1f} % of the events" in lines["ties"]
    assert f"{100 * about['test_partitions']['new_items']:.1f} %" in lines["test: new items"]


def test_columns_can_be_named(invoke: Invoke, log: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(log.read_text().replace("user,item,timestamp", "a,b,c", 1))
    named = ["--user-col", "a", "--item-col", "b", "--time-col", "c"]
    assert invoke("inspect", renamed, *named, "--json").stdout == invoke("inspect", log, "--json").stdout


def test_compare(invoke: Invoke, log: Path, tmp_path: Path) -> None:
    models = ["--models", "felrec-q,popularity,decayed-popularity"]
    arguments = ["compare", log, *models, "--out", tmp_path / "c", "--epochs", 1, *TINY]
    result = invoke(*arguments)
    assert result.exit_code == 0
    told = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert list(told["models"]) == ["felrec-q", "popularity", "decayed-popularity"]
    assert {(d["model"], d["metric"]) for d in told["differences"]} >= {("felrec-q", "hr@10"), ("felrec-q", "mrr")}
    assert result.stdout.count("\ntotal ") == 3
    assert "95 % interval" in result.stdout
    assert (tmp_path / "c" / "comparison.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "c" / "comparison.svg").read_text()
    again = invoke(*arguments, "--resume")
    assert [line for line in again.stdout.splitlines() if "wrote" not in line] == [
        line for line in result.stdout.splitlines() if "wrote" not in line
    ]


def test_recommend_to_a_user(invoke: Invoke, run: Path) -> None:
    lines = invoke("recommend", run, "--user", "1", "-k", 3).stdout.splitlines()
    assert lines[0].split() == ["item", "score"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3"]
    scores = [float(line.split()[2]) for line in lines[1:]]
    assert scores == sorted(scores, reverse=True)


def test_an_unknown_user_gets_recommendations_and_a_note(invoke: Invoke, run: Path) -> None:
    result = invoke("recommend", run, "--user", "nobody", "-k", 3)
    assert result.exit_code == 0
    assert "user nobody has no events yet" in result.stderr
    assert len(result.stdout.splitlines()) == 4


def test_recommend_an_item(invoke: Invoke, run: Path) -> None:
    lines = invoke("recommend", run, "--item", "1", "-k", 2).stdout.splitlines()
    assert lines[0] == "users to show item 1 to"
    assert lines[5] == "items similar to 1"
    assert len(lines) == 9
    assert "1" not in [line.split()[1] for line in lines[7:]]


def test_recommend_prints_json(invoke: Invoke, run: Path) -> None:
    told = json.loads(invoke("recommend", run, "--user", "1", "-k", 2, "--json").stdout)
    assert told["user"] == "1"
    assert [set(one) for one in told["items"]] == [{"id", "score"}] * 2
    assert json.loads(invoke("recommend", run, "--item", "1", "-k", 2, "--json").stdout).keys() == {
        "item",
        "users",
        "items",
    }


def test_recommend_to_many(invoke: Invoke, run: Path, tmp_path: Path) -> None:
    out, users, items = tmp_path / "recs.parquet", tmp_path / "users.txt", tmp_path / "items.txt"
    everyone = invoke("recommend", run, "--all", "-k", 3, "--out", out)
    assert "recommendations for" in everyone.stdout
    assert pl.read_parquet(out)["place"].max() == 3
    users.write_text("1\nnobody\n")
    items.write_text("1\n2\n3\n")
    some = invoke(
        "recommend", run, "--users", users, "--candidates", items, "--exclude-seen", "no", "--out", tmp_path / "r.csv"
    )
    assert "for 2 users" in some.stdout
    assert "1 of them have no events" in some.stdout
    found = pl.read_csv(tmp_path / "r.csv")
    assert found["user"].unique(maintain_order=True).to_list() == ["1", "nobody"]
    assert sorted(found.filter(pl.col("user") == "1")["item"].to_list()) == [1, 2, 3]


def test_shards_are_merged(invoke: Invoke, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "recs.parquet"
    for shard in ("2/2", "1/2"):
        assert f"to {out}.{shard[0]}-of-2" in invoke("recommend", run, "--all", "--out", out, "--shard", shard).stdout
    merged = invoke("merge-recs", f"{out}.1-of-2", f"{out}.2-of-2", "--out", out)
    assert "from 2 shards" in merged.stdout
    invoke("recommend", run, "--all", "--out", tmp_path / "whole.parquet")
    assert pl.read_parquet(out).equals(pl.read_parquet(tmp_path / "whole.parquet"))


def test_the_hint_does_not_choose_what_users_reject(invoke: Invoke, tmp_path: Path) -> None:
    kinds = ["view"] * 6 + ["buy"] * 3 + ["dislike"]
    rows = [f"{n % 30},{n % 17},{n},{kinds[n % 10]}" for n in range(200)]
    (tmp_path / "log.csv").write_text("\n".join(["user,item,timestamp,kind", *rows]))
    assert "choose with --where 'kind=buy'" in invoke("inspect", tmp_path / "log.csv").stdout


def test_kinds_are_shown_and_chosen(invoke: Invoke, tmp_path: Path) -> None:
    log, run = tmp_path / "shop.csv", tmp_path / "run"
    kinds = ["view"] * 8 + ["cart", "buy"]
    rows = [f"{n % 30},{n % 17},{n},{kinds[n % 10]},{n % 5}" for n in range(400)]
    log.write_text("\n".join(["user,item,time,event_type,rating", *rows]))
    shown = invoke("inspect", log).stdout
    assert "kinds (event_type)  view 80.0 %, " in shown
    assert "all count alike; choose with --where 'event_type=" in shown
    assert re.search(r"or say what they mean, as in --kinds 'view=context,(cart=1,buy=1|buy=1,cart=1)'", shown)
    assert "values (rating)     0 to 4, median 2\n" in shown
    assert "or say what they mean, as in --kinds 'value<2=0.5'" in shown
    worth = invoke("inspect", log, "--kinds", "buy=2,cart=ignore,view=context,rating<1=negative")
    assert "worth               count 11.1 %, context 88.9 %, negative 0.0 %" in worth.stdout
    assert "left out 40 events that --kinds says to ignore" in worth.stderr
    assert "no event matches" not in worth.stderr
    misspelt = invoke("inspect", log, "--kinds", "view=context,by=2").stderr
    assert re.search(r"no event matches 'by' of --kinds; kinds here are view, (cart, buy|buy, cart)$", misspelt.strip())
    chosen = invoke("inspect", log, "--where", "kind=buy,cart", "--where", "rating>3").stdout
    assert chosen.startswith("rows                40\n")
    trained = invoke(
        "train", log, "--model", "popularity", "--out", run, "--where", "kind!=view", "--where", "rating>0"
    )
    assert "--where 'kind!=view' --where 'rating>0'" in trained.stdout
