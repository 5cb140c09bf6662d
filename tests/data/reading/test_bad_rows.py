"""Rows that cannot be read: refused together by default, or left out, counted and written down."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from felrec.data.reading.sources import read_log
from felrec.errors import ConfigError, DataError

GOOD = [f"u{n % 7},{n % 5},{n}" for n in range(100)]


def write(path: Path, changes: dict[int, str]) -> Path:
    """A log with other lines in some rows, counted from 1."""
    lines = [changes.get(row, line) for row, line in enumerate(GOOD, start=1)]
    path.write_bytes("\n".join(["user,item,time", *lines, ""]).encode("latin-1"))
    return path


FAULTS = {
    3: ",4,2",
    4: "u1,,3",
    5: "u1,4",
    20: "u1,4,19,5",
    21: "u1,4,20,5",
    30: 'u1,"4,29',
    40: "u1,café,39",
    50: "u1,4,soon",
    51: "u1,4,later",
    52: "u1,4,never",
    53: "u1,4,2024-05-01",
    60: "",
    100: "u1,4,1,2",
}
REASONS = {
    "rows 3, 60: the user id in column 'user' is missing",
    "row 4: the item id in column 'item' is missing",
    "row 5: the time in column 'time' is missing",
    "rows 20, 21, 100: more fields than the first line; quote fields that hold ','",
    "row 30: a quote is not closed",
    "row 40: not UTF-8 text; save the file as UTF-8",
    "rows 50, 51, 52: the time 'soon' in column 'time' cannot be read; use ISO 8601 (2024-05-01 12:30:00) or a number",
    "row 53: the time '2024-05-01' in column 'time' is a date among numbers; use one kind for the whole column",
}


def test_all_faults_are_named_at_once_and_the_message_says_how_to_skip(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        read_log(write(tmp_path / "log.csv", FAULTS))
    said = str(error.value)
    assert all(reason in said for reason in REASONS)
    assert said.endswith("; fix them, or leave out 13 of 100 rows with --bad-rows skip --max-bad 0.13")
    assert "\n" not in said


def test_bad_rows_are_left_out_and_the_others_are_as_ever(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "log.csv", FAULTS), bad_rows="skip", max_bad=0.13)
    whole = read_log(write(tmp_path / "good.csv", {}))
    left = [n for n in range(100) if n + 1 not in FAULTS]
    assert log.times.tolist() == left
    assert log.user_ids.ids(log.users) == whole.user_ids.ids(whole.users[left])
    assert log.item_ids.ids(log.items) == whole.item_ids.ids(whole.items[left])
    assert log.skipped is not None
    assert str(log.skipped) == "left out 13 of 100 rows"
    assert set(log.skipped.reasons) == REASONS
    assert whole.skipped is None


def test_more_than_the_allowed_share_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", FAULTS)
    with pytest.raises(DataError, match=r"leave out 13 of 100 rows with --max-bad 0\.13$"):
        read_log(path, bad_rows="skip", max_bad=0.12)
    with pytest.raises(DataError, match="--max-bad"):
        read_log(path, bad_rows="skip")  # more than 5 %
    with pytest.raises(ConfigError, match="share from 0 to 1"):
        read_log(path, bad_rows="skip", max_bad=5)
    with pytest.raises(ConfigError, match="'refuse' or 'skip'"):
        read_log(path, bad_rows="ignore")  # type: ignore[arg-type]


def test_rejected_rows_are_written_with_file_row_and_reason(tmp_path: Path) -> None:
    path, rejected = write(tmp_path / "log.csv", FAULTS), tmp_path / "rejected.csv"
    with pytest.raises(DataError):
        read_log(path, rejected=rejected)
    refused = rejected.read_text()
    read_log(path, bad_rows="skip", max_bad=1, rejected=rejected)
    assert rejected.read_text() == refused
    table = pl.read_csv(rejected, infer_schema=False)
    assert table["row"].to_list() == [str(row) for row in FAULTS]
    assert set(table["file"]) == {str(path)}
    assert table.row(0) == (str(path), "3", "the user id in column 'user' is missing", None, "4", "2", None)
    assert table.filter(row="20")["line"].to_list() == ["u1,4,19,5"]
    assert table.filter(row="51")["time"].to_list() == ["later"]
    read_log(write(tmp_path / "good.csv", {}), rejected=rejected)
    assert pl.read_csv(rejected).height == 0


def test_rows_of_several_files_are_counted_in_their_own(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, {7: ",1,2", 9: "u1,2,3,4"} if name == "b.csv" else {8: "u1,1,soon"})
    log = read_log(tmp_path, bad_rows="skip", rejected=tmp_path.parent / "rejected.csv")
    assert len(log) == 197
    table = pl.read_csv(tmp_path.parent / "rejected.csv")
    assert [Path(file).name for file in table["file"]] == ["a.csv", "b.csv", "b.csv"]
    assert table["row"].to_list() == [8, 7, 9]


def test_json_lines_and_frames(tmp_path: Path) -> None:
    rows = [f'{{"user": "u{n % 7}", "item": {n % 5}, "time": {n}}}' for n in range(100)]
    rows[4], rows[5] = '{"user": "u1", ', '{"item": 5, "time": 7}'
    (tmp_path / "log.jsonl").write_text("\n".join(rows))
    log = read_log(tmp_path / "log.jsonl", bad_rows="skip")
    assert log.times.tolist() == [n for n in range(100) if n not in (4, 5)]
    frame = pl.DataFrame({"user": [1.0, 2.5, None, 4.0], "item": [1, 2, 3, 4], "time": [5, 6, 7, None]})
    with pytest.raises(DataError, match=r"no row is left|--max-bad 0\.75"):
        read_log(frame, bad_rows="skip", max_bad=0.5)
    both = pl.concat([frame, pl.DataFrame({"user": [9.0], "item": [8], "time": [9]})])
    kept = read_log(both, bad_rows="skip", max_bad=0.6, rejected=tmp_path / "rejected.csv")
    assert kept.times.tolist() == [5.0, 9.0]
    assert pl.read_csv(tmp_path / "rejected.csv")["row"].to_list() == [2, 3, 4]


def test_a_time_in_another_unit_is_the_bad_one(tmp_path: Path) -> None:
    times = [1_700_000_000 + n for n in range(50)]
    times[10] *= 1_000
    frame = pl.DataFrame({"user": [n % 7 for n in range(50)], "item": [n % 5 for n in range(50)], "time": times})
    log = read_log(frame, bad_rows="skip")
    assert len(log) == 49
    assert log.times[-1] == 1_700_000_049


def test_a_log_without_one_good_row(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,item,time\n1,2,soon\n,2,3\n")
    with pytest.raises(DataError, match=r"no row is left$"):
        read_log(tmp_path / "log.csv", bad_rows="skip", max_bad=1)


def test_fields_over_several_lines_are_fine_unless_a_line_is_broken(tmp_path: Path) -> None:
    text = 'user,item,time,note\n1,2,3,"a\nb"\n2,2,4,x\n3,3,5,z\n'
    (tmp_path / "log.csv").write_text(text)
    assert len(read_log(tmp_path / "log.csv")) == 3
    (tmp_path / "log.csv").write_text(text + "4,4,6,x,y\n")
    log = read_log(tmp_path / "log.csv", bad_rows="skip", max_bad=1)
    assert log.times.tolist() == [4.0, 5.0]
    assert log.skipped is not None
    assert log.skipped.reasons[0] == "rows 1, 2: a quote is not closed"
