"""Hands what other threads have finished to the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Completions:
    """Waits for futures of other threads, and wakes the event loop once for all that are done by then.

    A commit ends many posts at the same time, and `asyncio.wrap_future` would wake the loop for each of them.
    """

    def __init__(self) -> None:
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._waking = False

    async def result(self, future: Future[T]) -> T:
        """The result of a future. If the waiting task is cancelled, so is the future, unless it has begun."""
        if future.done():
            return future.result()
        loop = asyncio.get_running_loop()
        here: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(partial(self._finished, loop, here))
        try:
            return await here
        except asyncio.CancelledError:
            future.cancel()
            raise

    def _finished(self, loop: asyncio.AbstractEventLoop, here: asyncio.Future[Any], future: Future[Any]) -> None:
        """Called in the thread that finished a future."""
        self._done.append((here, future))  # before looking whether the loop will wake up: then it finds this one too
        if not self._waking and not loop.is_closed():
            self._waking = True
            loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._waking = False  # before taking any: what comes from now on wakes the loop again
        while self._done:
            here, future = self._done.popleft()
            if here.done():  # nobody waits any more
                continue
            if (error := future.exception()) is not None:
                here.set_exception(error)
            else:
                here.set_result(future.result())
