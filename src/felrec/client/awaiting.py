"""The same client to await, for programs built on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from felrec.answers.types import Erasure, Item, NearItems, NearUsers, Receipt, Recommendations, User
from felrec.client import calls
from felrec.client.calls import Call, Event, Id
from felrec.client.retries import Retries, options, perhaps_done, read, too_long, unreachable

A = TypeVar("A")


class AsyncClient:
    """As `Client`, but every method is awaited, and it is opened with `async with`."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 4) -> None:
        self.url, self.retries = url, Retries(retries)
        self._http = httpx.AsyncClient(**options(url, key, timeout))

    async def record(self, events: Iterable[Event], *, key: str | None = None) -> Receipt:
        """Post (user, item) or (user, item, time) events, at most 10,000; returns once they are on disk.

        Repeating the call with the same `key` counts the events once.
        """
        return await self._send(calls.record(events, key))

    async def recommend(
        self,
        user: Id,
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[Id] | None = None,
        tags: Sequence[str] = (),
        why: bool = False,
    ) -> Recommendations:
        """The best k items for a user, out of all or of `candidates`, with any of the `tags`."""
        return await self._send(calls.recommend(user, k, exclude_seen, candidates, tags, why))

    async def recommend_session(
        self,
        items: Sequence[Id],
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[Id] | None = None,
        tags: Sequence[str] = (),
    ) -> Recommendations:
        """The best k items for an anonymous user who had these items; nothing is recorded."""
        return await self._send(calls.recommend_session(items, k, exclude_seen, candidates, tags))

    async def similar(self, item: Id, k: int = 10) -> NearItems:
        """The items most like this one."""
        return await self._send(calls.near(NearItems, "items", item, "similar", k))

    async def audience(self, item: Id, k: int = 10) -> NearUsers:
        """The users to show an item to."""
        return await self._send(calls.near(NearUsers, "items", item, "audience", k))

    async def neighbours(self, user: Id, k: int = 10) -> NearUsers:
        """The users most like this one."""
        return await self._send(calls.near(NearUsers, "users", user, "neighbours", k))

    async def put_item(
        self, item: Id, *, title: str | None = None, tags: Sequence[str] = (), available: bool = True
    ) -> Item:
        """Say what an item is called, how it is tagged, and whether it may be recommended."""
        return await self._send(calls.put_item(item, title, tags, available))

    async def item(self, item: Id) -> Item:
        """What is known about an item."""
        return await self._send(calls.item(item))

    async def delete_item(self, item: Id) -> None:
        """Forget what was said about an item and recommend it no more."""
        return await self._send(calls.delete_item(item))

    async def user(self, user: Id) -> User:
        """A user's count of events and newest items."""
        return await self._send(calls.user(user))

    async def erase_user(self, user: Id) -> Erasure:
        """Erase a user: events, history, vector and id. All counts are 0 if the answer to a first attempt was lost."""
        return await self._send(calls.erase_user(user))

    async def stats(self) -> dict[str, Any]:
        """The numbers of the service."""
        return await self._send(calls.stats())

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
        attempt, perhaps = 0, False
        while True:
            answer, broken = await self._try(call)
            wait = self.retries.wait(attempt, answer)
            if wait is None:
                break
            await asyncio.sleep(wait)
            attempt, perhaps = attempt + 1, perhaps or perhaps_done(answer)
        if answer is None:
            assert broken is not None
            raise unreachable(broken, self.url)
        return read(call, answer, perhaps)

    async def _try(self, call: Call[Any]) -> tuple[httpx.Response | None, httpx.TransportError | None]:
        request = {"params": call.query, "json": call.body, "headers": call.headers}
        try:
            return await self._http.request(call.method, call.path, **request), None
        except httpx.InvalidURL as error:
            raise too_long(error) from None
        except httpx.TransportError as error:
            return None, error
