"""Stores of format 5, whose rows of the state have all their cells, in pages of fewer rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from felrec.data.tables.trimmed_values import TrimmedChange, trimmed
from felrec.store import row_blobs, sql_store, state_rows, state_writing
from felrec.store.protocol import TableSpec
from felrec.store.row_blobs import cells
from felrec.store.schema import FORMAT
from felrec.store.sqlite import SqliteStore
from small_stores import ROWS, begun, many_rows, one_block, vectors
from stores import contents_of

EXPECTED = [0.25 if number % 3 else 0.5 for number in range(ROWS)]


def encode_rows_as_before(change: TrimmedChange, tables: Sequence[TableSpec]) -> bytes:
    counts = [len(change[table.name][0]) if table.name in change else 0 for table in tables]
    parts = [np.array(counts, dtype="<i4").tobytes()]
    for table in tables:
        if table.name in change:
            rows, values = change[table.name]
            parts += [rows.astype("<i4").tobytes(), values.full(cells(table)).astype(table.dtype).tobytes()]
    return b"".join(parts)


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with pages and saves as felrec wrote them before."""
    monkeypatch.setattr(state_writing, "_LEAST", 0)
    monkeypatch.setattr(row_blobs, "_PAGE_BYTES_OF_FORMAT_5", 200)
    path = tmp_path / "s"
    with monkeypatch.context() as before:
        before.setattr(state_rows, "encode_rows", encode_rows_as_before)
        before.setattr(sql_store, "page_rows", lambda _: 0)
        with begun(path) as store:
            store.commit(one_block())
            store.save(trimmed(many_rows(0.25, *range(ROWS))), applied=1)
            while store.tidy(everything=True):
                pass
            store.commit(one_block(1))
            store.save(trimmed(many_rows(0.5, *range(0, ROWS, 3))), applied=2)
            store._database.connection.execute("PRAGMA user_version=5")
    return path


def test_it_is_read_without_a_change(old: Path) -> None:
    with SqliteStore(old, "read") as store:
        assert vectors(store.load()) == EXPECTED
        assert store._database.value("PRAGMA user_version") == 5


def test_it_is_written_on_with_its_own_pages(old: Path) -> None:
    with SqliteStore(old) as store:
        pages = store._database.value("SELECT count(*) FROM pages")
        assert pages > 5
        store.save(trimmed(many_rows(0.75, 7, ROWS)), applied=2)
        while store.tidy(everything=True):
            pass
        assert store._database.value("SELECT count(*) FROM pages") in (pages, pages + 1)
        assert store._database.value("PRAGMA user_version") == FORMAT
        assert store.verify() == []
    expected = [*EXPECTED[:7], 0.75, *EXPECTED[8:], 0.75]
    assert vectors(contents_of(old)) == expected


def test_lists_with_free_slots_are_smaller_than_before() -> None:
    tables = [TableSpec("lists", "<i4", (256,))]
    lists = np.full((64, 256), -1, dtype="<i4")
    lists[:, :8] = 5
    change = trimmed({"lists": (np.arange(64, dtype=np.int32), lists)})
    now, before = row_blobs.encode_rows(change, tables), encode_rows_as_before(change, tables)
    assert len(now) < len(before) / 15
    for blob in (now, before):
        rows, values = row_blobs.decode_rows(blob, tables)["lists"]
        assert (rows.tolist(), values.full(256).tolist()) == (list(range(64)), lists.tolist())


@pytest.mark.parametrize("cut", [1, 4, -4])
def test_a_damaged_blob_is_refused(cut: int) -> None:
    tables = [TableSpec("lists", "<i4", (4,))]
    change = trimmed({"lists": (np.arange(2, dtype=np.int32), np.arange(8, dtype="<i4").reshape(2, 4))})
    with pytest.raises(ValueError, match=r"blob|buffer"):
        row_blobs.decode_rows(row_blobs.encode_rows(change, tables)[:cut], tables)
