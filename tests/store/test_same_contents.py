"""Whatever is done to a store on a server gives the contents of a file to which the same was done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from felrec.data.events import Events
from felrec.data.tables.trimmed_values import trimmed
from felrec.ids import check_id
from felrec.store.postgres import PostgresStore
from felrec.store.protocol import Batch, Contents, Removal, StoredReceipt
from felrec.store.sql_store import SqlStore
from felrec.store.sqlite import SqliteStore
from postgresql import PostgresServer
from small_stores import EMPTY_BASE, IDENTITY, one_row


def is_id(text: str) -> bool:
    try:
        return bool(check_id(text))
    except ValueError:
        return False


IDS = st.lists(st.text(min_size=1, max_size=20).filter(is_id), unique=True, max_size=4)
VALUES = st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=10), st.lists)
STEP = st.one_of(
    st.tuples(st.just("commit"), IDS, st.dictionaries(st.sampled_from(["i", "é", "'\""]), VALUES, max_size=2)),
    st.tuples(st.just("save"), st.integers(0, 2000), st.booleans()),
    st.tuples(st.just("erase"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("tidy"), st.booleans(), st.none()),
)


def do(store: SqlStore, steps: list[tuple[Any, ...]]) -> Contents:
    """The same steps for each store."""
    users = 0
    for number, (kind, what, how) in enumerate(steps):
        if kind == "commit":
            names = [f"{number} {name}" for name in what]
            rows = np.arange(users, users + len(names))
            block = Events.of(rows, rows, np.full(len(names), number))
            answer = StoredReceipt(bytes([number]) * 16, b"\0" * 16, "{}", 1e9 + 0.1)
            batch = Batch(users, users, names, names, [block], [answer], {"item": how}, {f"note {number}": "é"})
            store.commit(replace(batch, change=b"\0"))
            users += len(names)
        elif kind == "save":
            store.save(trimmed(one_row(0)))
            store.save(trimmed({name: (rows + what % 3, values) for name, (rows, values) in one_row(0).items()}))
            for row in range(what % 3):
                store.save(trimmed(one_row(row, value=how)))
            store.save({}, applied=0, notes={"saved": str(number)})
        elif kind == "erase" and what < users:
            blocks = dict(enumerate(store.load().event_blocks))
            left = {n: block[block.users != what] for n, block in blocks.items() if (block.users == what).any()}
            store.erase(Removal(users=[what], blocks=left, attributes=["item"], clean=how, change=b"e"))
        else:
            store.tidy(bool(what))
    assert store.verify() == []
    return store.load()


def everything(contents: Contents) -> list[object]:
    columns = contents.events.users, contents.events.items, contents.events.times
    arrays = [contents.pairs, *columns, contents.blocks, *contents.state.values()]
    rest = [contents.identity, contents.users, contents.items, contents.attributes, contents.answers, contents.notes]
    return [*(array.tobytes() for array in arrays), *rest, contents.applied, contents.clock, contents.change]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=6))
def test_a_server_has_what_a_file_has(postgres: PostgresServer, steps: list[tuple[Any, ...]]) -> None:
    found = []
    with TemporaryDirectory() as folder:
        for store in (SqliteStore(Path(folder) / "s"), PostgresStore(postgres.socket_address, namespace="contents")):
            with store:
                store.begin(IDENTITY, EMPTY_BASE)
                found.append(everything(do(store, steps)))
                if isinstance(store, PostgresStore):
                    store._database.connection.execute("DROP SCHEMA contents CASCADE")
    assert found[0] == found[1]
