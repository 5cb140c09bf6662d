"""The same client to await, for programs built on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from felrec.answers.statistics import FeedbackReceipt
from felrec.answers.types import (
    ItemsReceipt,
    Receipt,
)
from felrec.client import calls, feedback, items
from felrec.client.calls import Call
from felrec.client.events import Event, parts_of
from felrec.client.feedback import Report, report_posts
from felrec.client.items import ItemRow, item_posts
from felrec.client.retries import Attempts, Retries, options

A = TypeVar("A")
P = ParamSpec("P")


def _sends(build: Callable[P, Call[A]]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, A]]:
    """A method to await that sends the request that `build` makes of its arguments."""

    async def method(self: AsyncClient, /, *given: P.args, **named: P.kwargs) -> A:
        return await self._send(build(*given, **named))

    calls.describe(method, build)
    return method


class AsyncClient:
    """As `Client`, but every method is awaited, and it is opened with `async with`."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 4) -> None:
        self.url, self.retries = url, Retries(retries)
        self._http = httpx.AsyncClient(**options(url, key, timeout))

    recommend = _sends(calls.recommend)
    recommend_session = _sends(calls.recommend_session)
    similar = _sends(calls.similar)
    audience = _sends(calls.audience)
    neighbours = _sends(calls.neighbours)
    list_items = _sends(calls.list_items)
    put_item = _sends(calls.put_item)
    item = _sends(calls.item)
    delete_item = _sends(calls.delete_item)
    user = _sends(calls.user)
    erase_user = _sends(calls.erase_user)
    stats = _sends(calls.stats)

    async def record(self, events: Iterable[Event] | Any, *, key: str | None = None) -> Receipt:
        """Post events and return once they are on disk: (user, item) or (user, item, time), dictionaries, or a frame.

        More than 10,000 are sent in several posts, in the order given. Repeating the call with the same `key` counts
        the events once.
        """
        parts, receipts = parts_of(events, key), list[Receipt]()
        for part, rows in enumerate(parts.rows):
            with parts.sending(part):
                receipts.append(await self._send(calls.record(rows, parts.key_of(part))))
        return parts.joined(receipts)

    async def put_items(self, rows: Iterable[ItemRow] | Any) -> ItemsReceipt:
        """Set the attributes of many items, as `put_item` does for one: dictionaries with an id, or a frame.

        More than 10,000 are sent in several posts. Repeating the call does no harm.
        """
        posts, receipts = item_posts(rows), list[ItemsReceipt]()
        for post in posts:
            receipts.append(await self._send(calls.put_items(post)))
        return items.joined(posts, receipts)

    async def report(self, reports: Iterable[Report]) -> FeedbackReceipt:
        """Say what became of recommendations: (ticket, "impression"), or (ticket, "click", position), or dictionaries.

        Each answer has a ticket. Without a position all its items were shown. A repeated report is counted once.
        """
        posts, receipts = report_posts(reports), list[FeedbackReceipt]()
        for rows in posts:
            receipts.append(await self._send(calls.report(rows)))
        return feedback.joined(posts, receipts)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, call: Call[A]) -> A:
        attempts = Attempts(call, self.retries, self.url)
        for seconds in attempts:
            await asyncio.sleep(seconds)
            with attempts.attempt():
                attempts.answer = await self._http.request(**call.request())
        return attempts.result()
