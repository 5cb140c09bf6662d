"""An erasure in pieces: posts are written in between, and neither a kill nor a full disk undoes or loses anything."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from felrec.answers.types import Erasure
from felrec.errors import NotFound, StoreFull
from felrec.service.engine import erasure
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes
from felrec.service.maintenance.exporting import events_of
from felrec.store.protocol import Removal
from felrec.store.sqlite import SqliteStore
from stores import BASE, contents_of, fitted, made_up, open_engine, post, state_of, submit

WHO = "erika.mustermann@example.org"
HERS = (*(f"item {item}" for item in (1, 2, 3, 2, 4, 5)), "her own draft")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "_ITEMS", 2)
    monkeypatch.setattr(erasure, "_BLOCKS", 1)


class KilledError(Exception):
    """The process ends here."""


def filled(path: Path, name: str = "felrec-s") -> Engine:
    engine = open_engine(path, fitted(name))
    post(engine, made_up(60))
    for number, item in enumerate(HERS):
        post(engine, [(WHO, item, 2e9 - 100 + number), *made_up(2, start=2e9 - 100 + number)])
    engine.put_item("her own draft", Attributes("Diary")).result()
    return engine


def before_each_piece(engine: Engine, work: Callable[[int], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `work` with the number of the piece that is about to be written."""
    erase, numbers = engine._store.erase, iter(range(1_000))

    def watched(removal: Removal) -> bool:
        work(next(numbers))
        return erase(removal)

    monkeypatch.setattr(engine._store, "erase", watched)


def test_posts_are_written_between_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = filled(tmp_path / "s")
    order: list[str] = []

    def posts(number: int) -> None:
        order.append("piece")
        submit(engine, [("ada", f"item {number}")]).add_done_callback(lambda _: order.append("post"))

    before_each_piece(engine, posts, monkeypatch)
    engine.erase_user(WHO).result()
    engine.close()
    assert len(order) == 2 * (1 + 3 + len(HERS) + 1)  # the id, three pieces of items, the blocks, the note
    assert order == ["piece", "post"] * (len(order) // 2)


def test_the_id_is_unknown_from_the_first_piece_on_and_can_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = filled(tmp_path / "s")
    known = []

    def comes_back(number: int) -> None:
        if number == 1:
            known.extend(engine.known("user", [WHO]))
            submit(engine, [(WHO, "item 7"), (WHO, "her own draft")])

    before_each_piece(engine, comes_back, monkeypatch)
    erased = engine.erase_user(WHO).result()
    assert known == []
    assert (erased.events, erased.items_rewritten, erased.items_removed) == (7, 6, 0)  # the draft has an event again
    assert engine.user(WHO).events == 2
    live = state_of(engine)
    engine.close()
    again = open_engine(tmp_path / "s", fitted("felrec-s"))
    assert state_of(again) == live
    assert sorted(entry.id for entry in again.user(WHO).history) == ["her own draft", "item 7"]
    again.close()


def test_erasures_come_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = filled(tmp_path / "s")
    others: list[Future[Erasure]] = []

    def more(number: int) -> None:
        if number == 1:
            others.extend(engine.erase_user(user) for user in ("user 1", WHO, "user 2"))

    before_each_piece(engine, more, monkeypatch)
    engine.erase_user(WHO).result()
    assert others[0].result().events > 0
    with pytest.raises(NotFound):
        others[1].result()
    assert others[2].result().events > 0
    assert not engine.known("user", [WHO, "user 1", "user 2"])
    engine.close()
    assert contents_of(tmp_path / "s").unfinished is None


@pytest.mark.parametrize("name", ["felrec-s", "repeat"])
def test_a_start_finishes_what_a_kill_interrupted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = filled(tmp_path / "whole", name)
    pieces: list[int] = []
    before_each_piece(whole, pieces.append, monkeypatch)
    whole.erase_user(WHO).result()
    whole.close()
    expected = contents_of(tmp_path / "whole")
    for last in pieces:
        path = tmp_path / str(last)
        engine = filled(path, name)
        before_each_piece(engine, lambda number, last=last: _kill_at(last, number), monkeypatch)  # type: ignore[misc]
        with pytest.raises(KilledError):
            engine.erase_user(WHO).result()
        engine.close(drain=False)
        if last:  # whoever reads the file meanwhile sees none of her events
            assert events_of(contents_of(path)).equals(events_of(expected))
        again = open_engine(path, fitted(name))
        assert again.known("user", [WHO]) == ([WHO] if last == 0 else [])
        live = state_of(again)
        again.close()
        left = contents_of(path)
        assert left.unfinished is None
        if last:
            assert (left.users, left.items, left.attributes) == (expected.users, expected.items, expected.attributes)
            assert all((left.state[table] == rows).all() for table, rows in expected.state.items())
            for file in tmp_path.glob(f"{last}*"):
                assert not any(word in file.read_bytes() for word in (WHO.encode(), b"her own draft", b"Diary"))
        again = open_engine(path, fitted(name))
        assert state_of(again) == live
        again.close()


def _kill_at(last: int, number: int) -> None:
    if number >= last:
        raise KilledError


def test_a_user_of_the_base_is_erased_in_pieces_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(tmp_path / "s", fitted("felrec-s", known=BASE))
    post(engine, [("3", "new", 1e9), ("4", "new", 1e9)])
    before_each_piece(engine, lambda number: _kill_at(2, number), monkeypatch)
    with pytest.raises(KilledError):
        engine.erase_user("3").result()
    engine.close(drain=False)
    assert 3 not in contents_of(tmp_path / "s").pairs["user"]
    again = open_engine(tmp_path / "s", fitted("felrec-s", known=BASE))
    assert again.health().events == len(BASE) + 1 - int((BASE.users == 3).sum())
    again.close()
    assert contents_of(tmp_path / "s").unfinished is None


def test_a_full_disk_fails_the_erasure_and_the_next_one_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = filled(tmp_path / "s")
    with monkeypatch.context() as patch:
        before_each_piece(engine, _full_from_the_third, patch)
        with pytest.raises(StoreFull):
            engine.erase_user(WHO).result()
    assert not engine.known("user", [WHO])
    post(engine, made_up(5))
    with pytest.raises(NotFound):
        engine.erase_user(WHO).result()
    engine.close()
    assert contents_of(tmp_path / "s").unfinished is None
    assert not any(b"her own draft" in file.read_bytes() for file in tmp_path.glob("s*"))


def _full_from_the_third(number: int) -> None:
    if number >= 2:
        raise StoreFull("no space left; free some space, then write again")


def test_a_start_without_space_serves_and_leaves_the_rest_to_the_next_erasure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = filled(tmp_path / "s")
    before_each_piece(engine, lambda number: _kill_at(2, number), monkeypatch)
    with pytest.raises(KilledError):
        engine.erase_user(WHO).result()
    engine.close(drain=False)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "erase", lambda *_: _full_from_the_third(2))
        again = open_engine(tmp_path / "s", fitted("felrec-s"))
        assert again.recommend("user 1").items
        assert not again.known("user", [WHO])
    again.erase_user("user 1").result()
    again.close()
    assert contents_of(tmp_path / "s").unfinished is None
    assert not any(b"her own draft" in file.read_bytes() for file in tmp_path.glob("s*"))


def test_a_store_says_what_is_left_to_erase(tmp_path: Path) -> None:
    engine = filled(tmp_path / "s")
    row = engine._state.users.row(WHO)
    engine.close()
    with SqliteStore(tmp_path / "s") as store:
        events = len(store.load().events)
        store.erase(Removal(users=[row], notes={"erasing": f"{row} 3"}))
    contents = contents_of(tmp_path / "s")
    assert contents.unfinished is not None
    assert (contents.unfinished.user, contents.unfinished.rewritten) == (row, 3)
    assert len(contents.unfinished.items) == contents.unfinished.events.sum() == len(contents.unfinished.blocks) == 7
    assert len(contents.events) == events - 7 == contents.blocks[-1]
    assert row not in contents.events.users
