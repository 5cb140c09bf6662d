"""The file: everything comes back, nothing half, nothing damaged, nobody else's."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest

from felrec.data.events import Events
from felrec.data.tables.trimmed_values import trimmed
from felrec.errors import FelrecError, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreMismatch
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.store.protocol import Batch, Contents, StoredReceipt
from felrec.store.records import encode_events
from felrec.store.sqlite import SqliteStore
from small_stores import IDENTITY, begun, one_block, one_row
from stores import contents_of, fitted, made_up, open_engine, post, submit


def test_nobody_else_can_read_a_store_or_its_copy(tmp_path: Path) -> None:
    with begun(tmp_path / "store.sqlite") as store:
        store.commit(one_block())
        store.backup(tmp_path / "copy.sqlite")
        modes = {
            path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob("*.sqlite*") if "lease" not in path.name
        }
    assert {"store.sqlite", "store.sqlite-wal", "copy.sqlite"} <= modes.keys()
    assert set(modes.values()) == {0}


def test_what_is_committed_comes_back(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        store.commit(one_block(1))
        store.commit(Batch(2, 2, attributes={"x": {"title": "é"}}, notes={"import": "3"}))
        store.save(trimmed(one_row(0)))
        store.save(trimmed(one_row(1)), applied=2)
    with SqliteStore(tmp_path / "s", "write") as store:
        kept = store.load()
    assert kept.identity == IDENTITY
    assert kept.users == ["user 0", "user 1"]
    assert str(kept.items[0]).startswith("🦔")
    assert list(map(encode_events, kept.event_blocks)) == [struct.pack("<iid", n, n, 5.0) for n in (0, 1)]
    assert kept.state["vectors"].tolist() == [[0.5] * 3, [1.5] * 3]
    assert kept.state["counts"].tolist() == [7, 7]
    assert kept.attributes == {"x": {"title": "é"}}
    assert kept.notes == {"import": "3"}
    assert kept.applied == 2


def test_a_batch_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        with pytest.raises(StoreError):
            store.commit(one_block(5))
        assert store.verify() == []
        assert len(store.load().events) == 1


@pytest.mark.parametrize("killed", ["before the head", "before the tables", "before the base"])
def test_a_store_that_was_never_filled_is_no_damage(tmp_path: Path, killed: str) -> None:
    if killed == "before the head":
        (tmp_path / "s").touch()
    elif killed == "before the tables":
        apsw.Connection(str(tmp_path / "s")).execute("PRAGMA journal_mode=WAL").fetchall()
    SqliteStore(tmp_path / "s").close()
    with SqliteStore(tmp_path / "s", "write") as store:
        assert store.is_empty
        assert store.verify() == []
        with pytest.raises(StoreError, match="never filled"):
            store.load()
    with begun(tmp_path / "t") as store:
        store.commit(one_block())
    apsw.Connection(str(tmp_path / "t")).execute("DELETE FROM meta WHERE name = 'counters'")
    with pytest.raises(StoreDamaged, match="counts are missing"):
        SqliteStore(tmp_path / "t", "read")


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        with pytest.raises(StoreBusy, match="in use by another engine"):
            SqliteStore(tmp_path / "s")
        with SqliteStore(tmp_path / "s", "read") as reader:
            store.commit(one_block())
            assert len(reader.load().events) == 1
    SqliteStore(tmp_path / "s").close()


def test_who_lost_the_store_to_another_cannot_write(tmp_path: Path) -> None:
    """Where files are shared without locks, the fence still tells."""
    with begun(tmp_path / "s") as store:
        other = apsw.Connection(str(tmp_path / "s"))
        other.execute("UPDATE meta SET value = '99' WHERE name = 'fence'")
        other.close()
        with pytest.raises(StoreBusy, match="taken over the store"):
            store.commit(one_block())


def test_a_full_store_keeps_what_it_had_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        store.limit(store.size())
        large = Batch(1, 1, blocks=[Events.of(*np.zeros((3, 20_000)))])
        with pytest.raises(StoreFull, match="no space left"):
            store.commit(large)
        assert store.verify() == []
        assert len(store.load().events) == 1
        store.limit(None)
        store.commit(large)
        assert len(store.load().events) == 20_001


def test_a_backup_is_whole_and_never_overwrites(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        with SqliteStore(tmp_path / "s", "read") as reader:
            reader.backup(tmp_path / "copy")
        store.commit(one_block(1))
        with pytest.raises(StoreError, match="exists"):
            store.backup(tmp_path / "copy")
    assert len(contents_of(tmp_path / "copy").events) == 1
    assert sorted(file.name for file in tmp_path.glob("*copy*")) == ["copy"]


def test_there_is_no_backup_of_what_is_damaged(tmp_path: Path) -> None:
    begun(tmp_path / "s").close()
    with SqliteStore(tmp_path / "s") as store:
        store.commit(one_block())
    other = apsw.Connection(str(tmp_path / "s"))
    other.execute("UPDATE blocks SET crc = crc + 1")
    other.close()
    with SqliteStore(tmp_path / "s", "read") as reader, pytest.raises(StoreDamaged, match="so no backup was made"):
        reader.backup(tmp_path / "copy")
    assert not list(tmp_path.glob("*copy*"))


def test_an_answer_is_kept_until_it_expires(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        now = store.seconds()
        kept, old = (
            StoredReceipt(b"k" * 16, b"b" * 16, "{}", now + 60),
            StoredReceipt(b"o" * 16, b"b" * 16, "{}", now - 60),
        )
        store.commit(replace(one_block(), answers=[kept, old]))
        assert store.answer(kept.key) == kept
        assert store.answer(old.key) is None
        assert store.answer(b"never came") is None
        plan = store._database.connection.execute("EXPLAIN QUERY PLAN DELETE FROM answers WHERE expires < 0").fetchall()
        assert "USING" in str(plan)  # no commit looks through all keys of the day


def test_files_of_others_and_of_the_future_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database " * 100)
    apsw.Connection(str(tmp_path / "foreign")).execute("CREATE TABLE users (id)")
    begun(tmp_path / "newer").close()
    apsw.Connection(str(tmp_path / "newer")).execute("PRAGMA user_version = 99")
    for name, error, words in (
        ("text", StoreDamaged, "not a felrec store"),
        ("foreign", StoreDamaged, "not a felrec store"),
        ("newer", StoreMismatch, "upgrade felrec"),
    ):
        with pytest.raises(error, match=words):
            SqliteStore(tmp_path / name)
    with pytest.raises(StoreError, match="no such store; check the path"):
        SqliteStore(tmp_path / "missing", "read")
    with pytest.raises(StoreError, match="no directory"):
        SqliteStore(tmp_path / "missing" / "s")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (fitted("popularity"), "belongs to felrec-q, not to popularity"),
        (fitted(width=16), "made with width 8, the run has 16"),
        (fitted(seed=1), "other weights"),
    ],
    ids=["model", "width", "weights"],
)
def test_a_store_of_another_model_is_refused(tmp_path: Path, model: object, words: str) -> None:
    open_engine(tmp_path / "s").close()
    with pytest.raises(StoreMismatch, match=words) as refused:
        open_engine(tmp_path / "s", model)  # type: ignore[arg-type]
    assert "felrec replay" in str(refused.value)
    open_engine(tmp_path / "s").close()  # and is free for the right one


def test_a_store_that_began_elsewhere_is_refused(tmp_path: Path) -> None:
    known = Events.of([0, 1], [0, 0], [1, 2])
    open_engine(tmp_path / "s", fitted(known=known)).close()
    other = fitted(known=known)
    other.fingerprint = "another log:1:2"
    with pytest.raises(StoreMismatch, match="another log or split"):
        open_engine(tmp_path / "s", other)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something in every table."""
    path = tmp_path_factory.mktemp("filled") / "s"
    engine = Engine.open(SqliteStore(path), fitted(known=Events.of([0, 1, 0], [0, 1, 1], [1, 2, 3])))
    post(engine, made_up(300))
    submit(engine, made_up(10, start=2e9 - 500), IdempotencyKey("a key", b"a body")).result()
    engine.put_item("item 1", Attributes("A title", ("a tag",), True)).result()
    engine.close()
    return path


def everything(contents: Contents) -> list[object]:
    columns = contents.events.users, contents.events.items, contents.events.times
    arrays = [contents.pairs, *columns, contents.blocks, *contents.state.values()]
    rest = [contents.identity, contents.users, contents.items, contents.attributes, contents.answers, contents.notes]
    return [*(array.tobytes() for array in arrays), *rest, contents.applied, contents.clock]


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_byte_is_found_or_harmless(filled: Path, tmp_path: Path, seed: int) -> None:
    """What a damaged file gives is refused, or is every byte of what was written: never something else."""
    sound, found = everything(contents_of(filled)), 0
    size = filled.stat().st_size
    places = np.random.default_rng(seed).choice(size, 60, replace=False)
    for place in [*places.tolist(), *range(seed * 25, seed * 25 + 25)]:  # and each byte of the head
        copy = tmp_path / f"at {place}"
        shutil.copy(filled, copy)
        with copy.open("r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 0x5A]))
        try:
            with SqliteStore(copy, "read") as store:
                kept = everything(store.load())
        except FelrecError:
            found += 1
        else:
            assert kept == sound, place
        for left in tmp_path.glob(f"at {place}*"):
            left.unlink()
    assert found > 5


def test_verify_names_what_is_wrong(filled: Path, tmp_path: Path) -> None:
    shutil.copy(filled, tmp_path / "s")
    other = apsw.Connection(str(tmp_path / "s"))
    other.execute("UPDATE pages SET records = zeroblob(length(records)) WHERE row = 0; DELETE FROM users WHERE row = 3")
    other.execute("UPDATE saves SET crc = crc + 1")
    other.execute("UPDATE blocks SET records = zeroblob(16) WHERE row = 1")
    other.close()
    with SqliteStore(tmp_path / "s", "read") as store:
        findings = " ".join(store.verify())
    assert "pages: row 0 is damaged" in findings
    assert "saves: row 0 is damaged" in findings
    assert "users: expected rows" in findings
    assert "blocks: row 1 is damaged" in findings
    with pytest.raises(StoreDamaged, match="restore a backup"):
        SqliteStore(tmp_path / "s", "read").load()


def test_an_answer_that_expired_is_removed_by_the_next_write(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(replace(one_block(), answers=[StoredReceipt(b"o" * 16, b"b" * 16, "{}", store.seconds() - 60)]))
        store.commit(one_block(1))
        assert store.load().answers == []


def test_what_is_committed_is_on_disk_and_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        names = ("journal_mode", "synchronous", "secure_delete")
        kept = {name: store._database.value(f"PRAGMA {name}") for name in names}
    assert kept == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}  # 2 is FULL
