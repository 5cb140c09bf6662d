"""A client of the online service, to wait for (`Client`) or to await (`AsyncClient`).

    from felrec.client import Client

    with Client("http://127.0.0.1:8000") as shop:
        shop.record([("ada", "song-1"), ("ada", "song-2")])
        for item in shop.recommend("ada", k=5).items:
            print(item.id, item.score)

Needs httpx (the extra `client`), and imports neither torch nor the service.
"""

from felrec.answers.statistics import FeedbackReceipt
from felrec.answers.types import (
    Erasure,
    FoundItem,
    FoundItems,
    HistoryEntry,
    Item,
    ItemsReceipt,
    NearItem,
    NearItems,
    NearUser,
    NearUsers,
    Reason,
    ReasonItem,
    Receipt,
    Recommendation,
    Recommendations,
    Rejected,
    User,
)
from felrec.client.awaiting import AsyncClient
from felrec.client.waiting import Client

__all__ = [
    "AsyncClient",
    "Client",
    "Erasure",
    "FeedbackReceipt",
    "FoundItem",
    "FoundItems",
    "HistoryEntry",
    "Item",
    "ItemsReceipt",
    "NearItem",
    "NearItems",
    "NearUser",
    "NearUsers",
    "Reason",
    "ReasonItem",
    "Receipt",
    "Recommendation",
    "Recommendations",
    "Rejected",
    "User",
]
