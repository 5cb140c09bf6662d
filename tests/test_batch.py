"""Recommendations for many users: the same as one by one, and an interrupted job goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import felrec
from felrec import batch
from felrec.batch import BatchJob, Shard
from felrec.data.reading.id_lists import read_id_list
from felrec.errors import ConfigError, DataError
from felrec.fitted import FittedModel

LOG = felrec.synthetic_log(2_000, n_users=40, n_items=60, seed=5).log
SMALL: dict[str, Any] = {"epochs": 1, "width": 8, "heads": 2, "feed_forward": 8, "history_length": 8}


@pytest.fixture(scope="module", params=["felrec-s", "popularity"])
def model(request: pytest.FixtureRequest) -> FittedModel:
    settings = SMALL if request.param == "felrec-s" else {}
    return felrec.fit(felrec.split_log(LOG), request.param, **settings)


@pytest.mark.parametrize("exclude_seen", [None, True, False])
@pytest.mark.parametrize("candidates", [None, [3, 5, 8, 13, "unknown"]])
def test_many_are_answered_as_one_by_one(
    model: FittedModel, exclude_seen: bool | None, candidates: list[int | str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felrec.fitted.AT_ONCE", 7)  # so that there are several calls
    users = [*model.user_ids.series.to_list(), 123_456]
    found = model.recommend_many(users, 4, exclude_seen=exclude_seen, candidates=candidates)
    assert found.columns == ["user", "place", "item", "score"]
    assert found["user"].unique(maintain_order=True).to_list() == [user for user in users if user in set(found["user"])]
    for user in users:
        alone = model.recommend(user, 4, exclude_seen=exclude_seen, candidates=candidates)
        rows = found.filter(pl.col("user") == user)
        assert rows["place"].to_list() == list(range(1, len(alone) + 1))
        assert rows["item"].to_list() == [item for item, _ in alone]
        assert rows["score"].to_list() == pytest.approx([score for _, score in alone], rel=1e-5)


def test_progress_counts_every_user(model: FittedModel) -> None:
    counted: list[int] = []
    model.recommend_many(model.user_ids.series, progress=counted.append)
    assert sum(counted) == len(model.user_ids)


def test_no_users_give_an_empty_frame(model: FittedModel) -> None:
    assert model.recommend_many([]).columns == ["user", "place", "item", "score"]
    with pytest.raises(ConfigError, match="k=0"):
        model.recommend_many([1], 0)


@pytest.mark.parametrize("suffix", batch.FORMATS)
def test_a_file_has_what_recommend_many_returns(
    model: FittedModel, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_PART", 15)
    out = tmp_path / f"recs{suffix}"
    rows = BatchJob(model, "a run", model.user_ids.series, 3).run(out)
    written = pl.read_parquet(out) if suffix == ".parquet" else pl.read_csv(out)
    assert rows == len(written)
    expected = model.recommend_many(model.user_ids.series, 3)
    assert written["item"].to_list() == expected["item"].to_list()
    assert written["user"].to_list() == expected["user"].to_list()
    assert [path.name for path in tmp_path.iterdir()] == [out.name]  # nothing is left beside it


def test_an_interrupted_job_goes_on_and_another_one_begins_anew(
    model: FittedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_PART", 15)
    out, asked = tmp_path / "recs.parquet", list[int]()
    job = BatchJob(model, "a run", model.user_ids.series, 3)

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    def first_part_only(done: int) -> None:
        asked.append(done)
        if sum(asked) > 15:
            interrupt(done)

    with pytest.raises(KeyboardInterrupt):
        job.run(out, first_part_only)
    assert not out.exists()
    many = FittedModel.recommend_many
    calls: list[int] = []

    def counted(self: FittedModel, users: pl.Series, *args: object, **options: object) -> pl.DataFrame:
        calls.append(len(users))
        return many(self, users, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FittedModel, "recommend_many", counted)
    job.run(out)
    assert sum(calls) == len(model.user_ids) - 15  # the first part was there
    assert pl.read_parquet(out)["item"].to_list() == many(model, model.user_ids.series, 3)["item"].to_list()

    with pytest.raises(KeyboardInterrupt):
        job.run(out, interrupt)
    calls.clear()
    BatchJob(model, "another run", model.user_ids.series, 3).run(out)
    assert sum(calls) == len(model.user_ids)


@pytest.mark.parametrize("name", ["recs.xls", "missing/recs.parquet"])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(
    model: FittedModel, name: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="--out"):
        BatchJob(model, "a run", model.user_ids.series).run(tmp_path / name)


def test_lists_of_ids_are_lines_or_columns(tmp_path: Path) -> None:
    (tmp_path / "u.txt").write_text("3\n\n 1 \n3\n")
    assert read_id_list(tmp_path / "u.txt", "user").to_list() == [3, 1]
    (tmp_path / "u.csv").write_text("name,user_id\nann,007\nbob,7\n")
    assert read_id_list(tmp_path / "u.csv", "user").to_list() == ["007", "7"]
    (tmp_path / "i.tsv").write_text("anything\nx\ny\n")
    assert read_id_list(tmp_path / "i.tsv", "item").to_list() == ["x", "y"]
    pl.DataFrame({"movieId": [5, 6], "title": ["a", "b"]}).write_parquet(tmp_path / "i.parquet")
    assert read_id_list(tmp_path / "i.parquet", "item").to_list() == [5, 6]


def test_lists_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    (tmp_path / "none.txt").write_text("\n")
    with pytest.raises(DataError, match="no users in it"):
        read_id_list(tmp_path / "none.txt", "user")
    with pytest.raises(DataError, match="one id per line"):
        read_id_list(tmp_path / "missing.txt", "user")
    (tmp_path / "other.csv").write_text("colour,size\nred,1\n")
    with pytest.raises(DataError, match="no column of items"):
        read_id_list(tmp_path / "other.csv", "item")


@pytest.fixture
def in_small_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.fitted.AT_ONCE", 7)
    monkeypatch.setattr(batch, "AT_ONCE", 7)
    monkeypatch.setattr(batch, "_PART", 14)


def shards_of(model: FittedModel, out: Path, count: int, **given: Any) -> list[Path]:
    shards = [Shard(number, count) for number in range(1, count + 1)]
    for shard in shards:
        BatchJob(model, "a run", model.user_ids.series, 3, shard=shard, **given).run(out)
    return [shard.file(out) for shard in shards]


@pytest.mark.usefixtures("in_small_calls")
@pytest.mark.parametrize("suffix", batch.FORMATS)
@pytest.mark.parametrize("count", [2, 3, 16])
def test_merged_shards_are_the_file_of_one_process(model: FittedModel, suffix: str, count: int, tmp_path: Path) -> None:
    whole, merged = tmp_path / f"whole{suffix}", tmp_path / f"merged{suffix}"
    rows = BatchJob(model, "a run", model.user_ids.series, 3).run(whole)
    shards = shards_of(model, merged, count)
    assert all(len(pl.read_parquet(shard)) < rows for shard in shards)
    assert batch.merge(shards[::-1], merged) == rows
    read = pl.read_parquet if suffix == ".parquet" else pl.read_csv
    assert read(merged).equals(read(whole))


@pytest.mark.usefixtures("in_small_calls")
def test_shards_that_do_not_fit_together_say_which(model: FittedModel, tmp_path: Path) -> None:
    out = tmp_path / "recs.parquet"
    one, two, three = shards_of(model, out, 3)
    with pytest.raises(ConfigError, match="missing: shard 1/3, 3/3;"):
        batch.merge([two], out)
    copy = two.rename(tmp_path / "copy")
    shards_of(model, out, 3)
    with pytest.raises(ConfigError, match=r"copy and .*recs\.parquet\.2-of-3 are both shard 2/3"):
        batch.merge([one, copy, two, three], out)
    (half, _) = shards_of(model, out, 2)
    with pytest.raises(ConfigError, match=r"1-of-2 and .*1-of-3 are of different jobs \(count differs\)"):
        batch.merge([one, two, three, half], out)
    other = shards_of(model, tmp_path / "other.parquet", 3, exclude_seen=False)
    with pytest.raises(ConfigError, match=r"other.* are of different jobs \(exclude_seen differs\)"):
        batch.merge([one, two, other[2]], out)
    BatchJob(model, "a run", model.user_ids.series, 3).run(tmp_path / "whole.parquet")
    for no_shard in ("whole.parquet", "nothing"):
        with pytest.raises(ConfigError, match=f"{no_shard}: not a shard"):
            batch.merge([one, tmp_path / no_shard], out)
    assert not out.exists()


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/2/3", "-1/2"])
def test_shards_are_written_as_a_fraction(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--shard {text}: write it as 3/16"):
        Shard.read(text)
