"""`felrec items import`: titles and tags from a file into a store or a service."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from http_service.running import opened_in_a_thread
from typer.testing import Result

from felrec import runs
from felrec.answers.types import Item
from felrec.errors import ConfigError, DataError
from felrec.service.engine.engine import Engine
from felrec.store.sqlite import SqliteStore

Invoke = Callable[..., Result]
TEA = {"item": "tea", "title": "Tea", "tags": "hot|drink", "expires": "2030-01-01T00:00:00Z", "price": "3"}
MILK = {"item": "milk", "title": "Milk", "tags": "", "expires": "", "price": "1"}


def stored(store: Path, run: Path, item: str) -> Item:
    engine = Engine.open(SqliteStore(store), runs.load(run))
    try:
        return engine.item(item)
    finally:
        engine.close()


def written(path: Path) -> Path:
    if path.suffix == ".parquet":
        moments = [datetime(2030, 1, 1, tzinfo=UTC), None]
        frame = pl.DataFrame({"item": ["tea", "milk"], "title": ["Tea", "Milk"], "price": [3, 1], "expires": moments})
        frame.with_columns(tags=pl.Series([["hot", "drink"], []])).write_parquet(path)
    elif path.suffix == ".csv":
        pl.DataFrame([TEA, MILK]).write_csv(path, separator=";")
    else:
        rows = [{**TEA, "tags": ["hot", "drink"]}, MILK]
        path.write_text(json.dumps(rows) if path.suffix == ".json" else "\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("name", ["items.csv", "items.parquet", "items.jsonl", "items.json"])
def test_every_shape_of_file(name: str, tmp_path: Path, run: Path, invoke: Invoke) -> None:
    file, store = written(tmp_path / name), tmp_path / "store.sqlite"
    done = invoke("items", "import", file, run, "--store", store)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{file}: 2 rows accepted, 0 rejected\n"
    assert "ignored columns: price" in done.stderr
    tea = stored(store, run, "tea")
    assert (tea.title, tea.tags, tea.expires) == ("Tea", ("hot", "drink"), 1893456000.0)
    assert stored(store, run, "milk") == Item("milk", "Milk", (), True, 0)


def test_bad_rows_are_named_and_the_others_stored(tmp_path: Path, run: Path, invoke: Invoke) -> None:
    file, store = tmp_path / "items.csv", tmp_path / "store.sqlite"
    rows = ["tea,yes", ",yes", "milk,perhaps", *["jam,?"] * 12]
    file.write_text("\n".join(["item_id,available", *rows, ""]))
    done = invoke("items", "import", file, run, "--store", store)
    assert done.exit_code == 1
    assert f"{file}: row 2: id: missing" in done.stderr
    assert f"{file}: row 3: available: " in done.stderr
    assert "… and 4 more" in done.stderr
    assert "1 rows accepted, 14 rejected" in done.stdout
    assert stored(store, run, "tea").available


def test_into_a_running_service(tmp_path: Path, run: Path, invoke: Invoke) -> None:
    file = written(tmp_path / "items.parquet")
    with opened_in_a_thread(run, tmp_path / "store.sqlite") as service:
        done = invoke("items", "import", file, "--service", service.url)
        assert "2 rows accepted, 0 rejected" in done.stdout, done.output
        assert service.get("/v1/items/tea").json()["tags"] == ["hot", "drink"]


def test_files_that_cannot_be_read_are_refused(tmp_path: Path, run: Path, invoke: Invoke) -> None:
    def refused(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError) as error:
            invoke("items", "import", tmp_path / name, run, "--store", tmp_path / "store.sqlite")
        return str(error.value)

    assert "row 2: not JSON" in refused("a.jsonl", '{"id": 1}\n{"id":\n')
    assert "row 2: not a JSON object" in refused("b.json", '[{"id": 1}, 7]')
    assert "unknown file name ending" in refused("c.xlsx", "x")
    with pytest.raises(ConfigError, match="either --service or a store"):
        invoke("items", "import", tmp_path / "a.jsonl", run, "--service", "http://127.0.0.1:1")
