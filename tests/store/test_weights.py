"""Events with weights in a store: they come back, beside blocks without, and an erasure keeps those of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from felrec.data.events import Events
from felrec.store.protocol import Batch, Removal
from felrec.store.records import encode_events
from felrec.store.sqlite import SqliteStore
from small_stores import begun, one_block

WEIGHTED = Events.of([0, 0, 0], [0, 0, 0], [6.0, 7.0, 8.0], [2.5, 0, -1])
MIXED = Events.of([0, 0], [0, 0], [9.0, 9.5], [np.nan, 3])


def filled(path: Path) -> SqliteStore:
    store = begun(path)
    store.commit(one_block())
    store.commit(Batch(1, 1, blocks=[WEIGHTED, MIXED]))
    return store


def test_weights_come_back_beside_blocks_without(tmp_path: Path) -> None:
    with filled(tmp_path / "s"):
        pass
    with SqliteStore(tmp_path / "s", "write") as store:
        assert store.verify() == []
        kept = store.load()
    written = [one_block().blocks[0], WEIGHTED, MIXED]
    assert list(map(encode_events, kept.event_blocks)) == list(map(encode_events, written))
    assert kept.events.counts.tolist() == [True, True, False, False, True, True]


def test_a_block_without_weights_has_the_bytes_of_earlier_formats() -> None:
    plain = one_block().blocks[0]
    without = Events(plain.users, plain.items, plain.times, np.array([np.nan], np.float32))
    assert encode_events(without) == encode_events(plain)
    assert len(encode_events(plain)) == 16


def test_an_erasure_counts_the_events_of_blocks_with_weights(tmp_path: Path) -> None:
    with filled(tmp_path / "s") as store:
        store.erase(Removal(blocks={1: WEIGHTED[:1], 2: MIXED[:0]}))
        assert store.verify() == []
        kept = store.load()
    assert kept.events.times.tolist() == [5.0, 6.0]
    assert kept.events.counts.tolist() == [True, True]
