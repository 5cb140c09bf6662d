"""The client that waits for each answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from felrec.answers.types import Erasure, Item, NearItems, NearUsers, Receipt, Recommendations, User
from felrec.client import calls
from felrec.client.calls import Call, Event, Id
from felrec.client.retries import Retries, options, perhaps_done, read, too_long, unreachable

A = TypeVar("A")


class Client:
    """Talks to a felrec service. Busy services and broken connections are tried again; refusals are `ServiceError`."""

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 30.0, retries: int = 4) -> None:
        self.url, self.retries = url, Retries(retries)
        self._http = httpx.Client(**options(url, key, timeout))

    def record(self, events: Iterable[Event], *, key: str | None = None) -> Receipt:
        """Post (user, item) or (user, item, time) events, at most 10,000; returns once they are on disk.

        Repeating the call with the same `key` counts the events once.
        """
        return self._send(calls.record(events, key))

    def recommend(
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
        return self._send(calls.recommend(user, k, exclude_seen, candidates, tags, why))

    def recommend_session(
        self,
        items: Sequence[Id],
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[Id] | None = None,
        tags: Sequence[str] = (),
    ) -> Recommendations:
        """The best k items for an anonymous user who had these items; nothing is recorded."""
        return self._send(calls.recommend_session(items, k, exclude_seen, candidates, tags))

    def similar(self, item: Id, k: int = 10) -> NearItems:
        """The items most like this one."""
        return self._send(calls.near(NearItems, "items", item, "similar", k))

    def audience(self, item: Id, k: int = 10) -> NearUsers:
        """The users to show an item to."""
        return self._send(calls.near(NearUsers, "items", item, "audience", k))

    def neighbours(self, user: Id, k: int = 10) -> NearUsers:
        """The users most like this one."""
        return self._send(calls.near(NearUsers, "users", user, "neighbours", k))

    def put_item(self, item: Id, *, title: str | None = None, tags: Sequence[str] = (), available: bool = True) -> Item:
        """Say what an item is called, how it is tagged, and whether it may be recommended."""
        return self._send(calls.put_item(item, title, tags, available))

    def item(self, item: Id) -> Item:
        """What is known about an item."""
        return self._send(calls.item(item))

    def delete_item(self, item: Id) -> None:
        """Forget what was said about an item and recommend it no more."""
        return self._send(calls.delete_item(item))

    def user(self, user: Id) -> User:
        """A user's count of events and newest items."""
        return self._send(calls.user(user))

    def erase_user(self, user: Id) -> Erasure:
        """Erase a user: events, history, vector and id. All counts are 0 if the answer to a first attempt was lost."""
        return self._send(calls.erase_user(user))

    def stats(self) -> dict[str, Any]:
        """The numbers of the service."""
        return self._send(calls.stats())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[A]) -> A:
        attempt, perhaps = 0, False
        while True:
            answer, broken = self._try(call)
            wait = self.retries.wait(attempt, answer)
            if wait is None:
                break
            time.sleep(wait)
            attempt, perhaps = attempt + 1, perhaps or perhaps_done(answer)
        if answer is None:
            assert broken is not None
            raise unreachable(broken, self.url)
        return read(call, answer, perhaps)

    def _try(self, call: Call[Any]) -> tuple[httpx.Response | None, httpx.TransportError | None]:
        request = {"params": call.query, "json": call.body, "headers": call.headers}
        try:
            return self._http.request(call.method, call.path, **request), None
        except httpx.InvalidURL as error:
            raise too_long(error) from None
        except httpx.TransportError as error:
            return None, error
