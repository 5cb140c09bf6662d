"""Synthetic groceries, for a demo without any data."""

from __future__ import annotations

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.synthetic import synthetic_log
from felrec.demo.groceries import HOUSEHOLDS, PRODUCTS
from felrec.demo.world import World, until_now
from felrec.errors import how_to_install
from felrec.service.engine.types import Attributes


def synthetic_groceries(events: int) -> World:
    """A synthetic shop with one department for each taste of the synthetic log."""
    made = synthetic_log(events, n_users=HOUSEHOLDS, n_items=PRODUCTS // 2, seed=0)
    departments = ("Bakery", "Dairy", "Produce", "Meat", "Frozen", "Drinks", "Snacks", "Household")
    users, items = made.log.user_ids.ids(made.log.users), made.log.item_ids.ids(made.log.items)
    tags = [departments[taste] for taste in made.item_taste]
    ids = [f"product-{item}" for item in made.log.item_ids.ids(range(len(tags)))]
    bought = pl.DataFrame(
        {
            "user": [f"household-{user}" for user in users],
            "item": [f"product-{item}" for item in items],
            "timestamp": made.log.times.astype(np.int64),
        }
    )
    return World(
        events=until_now(bought),
        attributes={item: Attributes(f"{tag} no. {item[8:]}", (tag,)) for item, tag in zip(ids, tags, strict=True)},
        source=f"{events:,} synthetic purchases (for real grocery baskets {how_to_install('demo')})",
    )
