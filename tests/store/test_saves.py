"""The rows of the state in a file: saves of many parts, and pages into which they are folded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import killed_copy
from felrec.data.tables.trimmed_values import trimmed
from felrec.errors import StoreFull
from felrec.store import row_blobs, state_writing
from felrec.store.protocol import Removal
from felrec.store.sqlite import SqliteStore
from small_stores import ROWS, begun, many_rows, one_block, one_row, vectors
from stores import contents_of


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pages, one at a time, and every save is worth folding."""
    monkeypatch.setattr(row_blobs, "_PAGE_BYTES", 200)
    monkeypatch.setattr(state_writing, "_PIECE", 0.0)
    monkeypatch.setattr(state_writing, "_LEAST", 0)


def saved(path: Path) -> SqliteStore:
    """A store whose rows were saved in two parts, and some again."""
    store = begun(path)
    store.commit(one_block())
    store.save(trimmed(many_rows(0.25, *range(ROWS - 1, 9, -1))))
    store.save(trimmed(many_rows(0.25, *range(10))), applied=1)
    store.commit(one_block(1))
    store.save(trimmed(many_rows(0.5, *range(0, ROWS, 3))), applied=2)
    return store


EXPECTED = [0.25 if number % 3 else 0.5 for number in range(ROWS)]


def test_the_last_value_of_each_row_counts(tmp_path: Path) -> None:
    with saved(tmp_path / "s"):
        kept = contents_of(tmp_path / "s")
    assert (kept.applied, vectors(kept)) == (2, EXPECTED)
    assert kept.state["counts"].tolist() == [int(8 * value) for value in EXPECTED]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_save_that_is_not_complete_is_ignored_and_removed(parts: int, tmp_path: Path) -> None:
    with saved(tmp_path / "s") as store:
        store.commit(one_block(2))
        for part in range(parts):
            store.save(trimmed(many_rows(0.75, part, ROWS + part)))
        killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    kept = contents_of(killed)
    assert (kept.applied, vectors(kept)) == (2, EXPECTED)
    with SqliteStore(killed) as store:
        assert store._database.value("SELECT count(*) FROM saves") == 3
        store.save(trimmed(many_rows(0.75, 1, 2)), applied=3)
    assert vectors(contents_of(killed)) == [EXPECTED[0], 0.75, 0.75, *EXPECTED[3:]]


def folds(store: SqliteStore) -> Iterator[None]:
    while store.tidy():
        yield


def test_saves_are_folded_into_pages_and_removed(tmp_path: Path) -> None:
    with saved(tmp_path / "s") as store:
        for piece, _ in enumerate(folds(store)):
            killed = killed_copy(tmp_path / "s", tmp_path / f"killed {piece}")
            kept = contents_of(killed)
            assert (kept.applied, vectors(kept)) == (2, EXPECTED)
        assert piece > 5
        assert store._database.value("SELECT count(*) FROM saves") == 0
        assert store._database.value("SELECT count(*) FROM pages") > 5
        assert not store.tidy()
    assert vectors(contents_of(tmp_path / "s")) == EXPECTED


def test_saves_go_on_while_others_are_folded(tmp_path: Path) -> None:
    with saved(tmp_path / "s") as store:
        for piece, _ in enumerate(folds(store)):
            if piece < 6:
                store.save(trimmed(many_rows(0.75, piece, ROWS + piece)), applied=2)
            kept = contents_of(tmp_path / "s")
            new = min(piece, 5) + 1
            assert vectors(kept) == [0.75] * new + EXPECTED[new:] + [0.75] * new
    assert vectors(contents_of(tmp_path / "s")) == [0.75] * 6 + EXPECTED[6:] + [0.75] * 6


def test_a_full_disk_stops_folding_and_loses_nothing(tmp_path: Path) -> None:
    with saved(tmp_path / "s") as store:
        next(folds(store))
        store.limit(store.size() // 3)
        with pytest.raises(StoreFull):
            store.save(trimmed(many_rows(0.75, *range(4_000))))
        store.limit(None)
        for _ in folds(store):
            pass
    assert vectors(contents_of(tmp_path / "s")) == EXPECTED


def test_an_erasure_leaves_rows_in_pages_alone(tmp_path: Path) -> None:
    """Otherwise an older value of a row that was erased would stay in a save, and count."""
    with saved(tmp_path / "s") as store:
        next(folds(store))
        store.save(trimmed(many_rows(0.75, 7)))  # a part of a save that is not complete
        store.erase(Removal(state=one_row(7, 0.0), notes={"n": "x"}))
        assert store._database.value("SELECT count(*) FROM saves") == 0
        expected = [*EXPECTED[:7], 0.0, *EXPECTED[8:]]
        assert vectors(contents_of(tmp_path / "s")) == expected
        store.save(trimmed(many_rows(0.75, 1)), applied=2)
        expected[1] = 0.75
    assert vectors(contents_of(tmp_path / "s")) == expected


def test_what_is_saved_is_not_acknowledged(tmp_path: Path) -> None:
    """A save is not synced: after a power cut it may be missing, and the mark must not call that a loss."""
    with saved(tmp_path / "s") as store:
        before = (tmp_path / "s-mark").read_bytes()
        store.save(trimmed(many_rows(0.75, 7)), applied=2)
        assert (tmp_path / "s-mark").read_bytes() == before
        assert store._database.value("PRAGMA synchronous") == 2  # FULL, for the next commit
