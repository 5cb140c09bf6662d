"""What processes left in the inbox is done by the next engine that has the store alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from felrec.data.events import EventColumns
from felrec.service.engine.cluster.commands import DeleteItem, EraseUser, Post, PutItem, PutItems, to_inbox
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes
from felrec.store.sqlite import SqliteStore
from places import Place
from stores import NO_REBUILD, fitted, post


def opened(place: Place) -> Engine:
    return Engine.open(place.alone(), fitted("felrec-s"), limits=NO_REBUILD, empty=True)


def posted(*events: tuple[str, str, float]) -> Post:
    columns = [event[0] for event in events], [event[1] for event in events], [event[2] for event in events]
    return Post(EventColumns.of(*columns))


def test_commands_are_done_once_and_in_order(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    begun = [("ann", "x", 1e9), ("bob", "y", 1e9 + 1)]
    engine = opened(place)
    post(engine, begun)
    engine.close()
    with place() as store:
        for command in (
            posted(("cid", "z", 1e9 + 2)),
            PutItem("z", Attributes(title="before")),
            PutItem("z", Attributes(title="after")),
            PutItems({"new": Attributes(title="New")}),
            DeleteItem("no such item"),
            EraseUser("ann"),
            posted(("bob", "z", 1e9 + 3), ("bob", "x", 1e9 + 4)),
        ):
            store.append(*to_inbox(command, "of a process"))
        store.append("Post", b"no command")
    for _ in range(2):  # the second start finds nothing to do
        engine = opened(place)
        assert engine.health().events == 4
        assert engine.item("z").title == "after"
        assert engine.item("new").title == "New"
        assert engine.known("user", ["ann", "bob", "cid"]) == ["bob", "cid"]
        engine.close()
        with place("read", shared=False) as store:
            assert store.verify() == []
            contents = store.load()
        assert contents.inbox == []
        assert [len(block) for block in contents.event_blocks] == [1, 1, 2]
    assert "a command of the inbox cannot be done" in caplog.text


def test_commands_stay_while_the_store_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = Place(str(tmp_path / "s"), None)
    opened(place).close()
    with place() as store:
        store.append(*to_inbox(posted(*((f"user {n}", "x" * 200, 1e9 + n) for n in range(5_000)))))
        store.append(*to_inbox(PutItem("z", Attributes(title="Z"))))
    full = SqliteStore(tmp_path / "s", max_bytes=1)
    Engine.open(full, fitted("felrec-s"), limits=NO_REBUILD).close()
    assert "2 writes of other processes are left for the next start" in caplog.text
    engine = opened(place)
    assert engine.health().events == 5_000
    assert engine.item("z").title == "Z"
    engine.close()
