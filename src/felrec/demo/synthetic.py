"""Worlds that need no data: synthetic groceries, and synthetic songs with made-up titles."""

from __future__ import annotations

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.synthetic import SyntheticLog, synthetic_log
from felrec.demo.groceries import HOUSEHOLDS, PRODUCTS
from felrec.demo.world import World, until_now
from felrec.errors import how_to_install
from felrec.service.engine.types import Attributes

LISTENERS, SONGS = 1_000, 800
_DEPARTMENTS = ("Bakery", "Dairy", "Produce", "Meat", "Frozen", "Drinks", "Snacks", "Household")
_STYLES = ("Folk", "Jazz", "Techno", "Metal", "Soul", "Hip-hop", "Classical", "Reggae")
_FIRST = """
    Amber Blue Broken Crimson Distant Electric Empty Faded Golden Hidden Hollow Last Late Lonely Lost Midnight Morning
    Northern Open Paper Quiet Restless Running Secret Silent Silver Slow Southern Velvet Wandering
"""
_SECOND = """
    Avenue Bridge Candle City Dancer Desert Echo Fire Garden Harbour Heart Highway Island Letter Light Mirror Moon
    Mountain Ocean Rain River Road Shadow Sky Stranger Summer Sunday Train Window Winter
"""


def synthetic_groceries(events: int) -> World:
    """A synthetic shop with one department for each taste of the synthetic log."""
    made = synthetic_log(events, n_users=HOUSEHOLDS, n_items=PRODUCTS // 2, seed=0)
    ids = [f"product-{item}" for item in _numbers(made)]
    tags = [_DEPARTMENTS[taste] for taste in made.item_taste]
    return World(
        events=_events(made, "household", "product"),
        attributes={item: Attributes(f"{tag} no. {item[8:]}", (tag,)) for item, tag in zip(ids, tags, strict=True)},
        source=f"{events:,} synthetic purchases (for real grocery baskets {how_to_install('demo')})",
    )


def synthetic_songs(events: int) -> World:
    """Listeners with a style each, who play songs again and again; new songs appear all the time."""
    made = synthetic_log(events, n_users=LISTENERS, n_items=SONGS, repeat_share=0.4, birth_share=0.7, seed=0)
    pairs = [f"{first} {second}" for first in _FIRST.split() for second in _SECOND.split()]
    titles = np.random.default_rng(0).permutation(pairs)
    named = zip(_numbers(made), titles[: made.log.n_items].tolist(), made.item_taste, strict=True)
    return World(
        events=_events(made, "listener", "song"),
        attributes={f"song-{item}": Attributes(title, (_STYLES[taste],)) for item, title, taste in named},
        source=f"{events:,} synthetic plays of songs with made-up titles",
    )


def _numbers(made: SyntheticLog) -> list[int] | list[str]:
    """The ids of the items, by row."""
    return made.log.item_ids.ids(range(made.log.n_items))


def _events(made: SyntheticLog, user: str, item: str) -> pl.DataFrame:
    users, items = made.log.user_ids.ids(made.log.users), made.log.item_ids.ids(made.log.items)
    happened = {
        "user": [f"{user}-{one}" for one in users],
        "item": [f"{item}-{one}" for one in items],
        "timestamp": made.log.times.astype(np.int64),
    }
    return until_now(pl.DataFrame(happened))
