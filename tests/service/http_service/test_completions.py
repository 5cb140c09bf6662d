"""Results of other threads reach those who wait for them, and the event loop wakes up once for many."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from felrec.errors import StoreFull
from felrec.service.http.completions import Completions


def in_a_thread(work: Any) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def finish(futures: list[Future[int]]) -> None:
    for number, future in enumerate(futures):
        future.set_result(number)


def test_many_results_wake_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    futures: list[Future[int]] = [Future() for _ in range(50)]

    async def wait_for_all() -> tuple[list[int], int]:
        completions, loop, woken = Completions(), asyncio.get_running_loop(), 0
        wake = loop.call_soon_threadsafe

        def counted(*arguments: Any) -> asyncio.Handle:
            nonlocal woken
            woken += 1
            return wake(*arguments)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        waiting = [asyncio.ensure_future(completions.result(future)) for future in futures]
        await asyncio.sleep(0)  # all wait now
        thread = in_a_thread(lambda: finish(futures))
        thread.join()  # the loop sleeps meanwhile
        return await asyncio.gather(*waiting), woken

    assert asyncio.run(wait_for_all()) == (list(range(50)), 1)


def test_results_that_come_one_by_one_all_arrive() -> None:
    async def one_after_another() -> list[int]:
        completions, futures = Completions(), [Future[int]() for _ in range(200)]
        thread = in_a_thread(lambda: finish(futures))
        found = [await asyncio.wait_for(completions.result(future), 20) for future in futures]
        thread.join()
        return found

    assert asyncio.run(one_after_another()) == list(range(200))


def test_errors_arrive() -> None:
    async def failing() -> None:
        completions, early, late = Completions(), Future[int](), Future[int]()
        early.set_exception(StoreFull("full"))
        with pytest.raises(StoreFull):
            await completions.result(early)
        waiting = asyncio.ensure_future(completions.result(late))
        await asyncio.sleep(0)
        in_a_thread(lambda: late.set_exception(StoreFull("full"))).join()
        with pytest.raises(StoreFull):
            await waiting

    asyncio.run(failing())


def test_who_stops_waiting_cancels_what_has_not_begun_and_nothing_else() -> None:
    async def leaving() -> tuple[bool, bool]:
        completions, queued, begun = Completions(), Future[int](), Future[int]()
        begun.set_running_or_notify_cancel()
        tasks = [asyncio.ensure_future(completions.result(future)) for future in (queued, begun)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        in_a_thread(lambda: begun.set_result(1)).join()
        await asyncio.sleep(0.01)  # it is delivered to nobody
        return queued.cancelled(), begun.cancelled()

    assert asyncio.run(leaving()) == (True, False)
