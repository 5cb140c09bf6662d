"""Who waits for whom: reading behind writing, posts behind an erasure."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from attacks.load import Prober, made_up_events
from attacks.target import Code, Row, Service
from attacks.verdict import Attack, Finding, in_time, judge, percentile

ROUTES = (
    "/",
    "/metrics",
    "/v1/stats",
    "/v1/users/u1",
    "/v1/items/i1",
    "/v1/items/i1/similar",
    "/v1/users/u1/recommendations",
    "/v1/users/u1/recommendations?why=true",
)


def reads_behind_writes(code: Code) -> Finding:
    rounds, events = (1, 1_000) if code.quick else (4, 10_000)
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        service.post_all(made_up_events(2_000))
        big = [made_up_events(events, seed=seed) for seed in range(rounds)]
        with ExitStack() as stack:
            probes = [stack.enter_context(Prober(service, path, 0.1)) for path in ROUTES]
            for rows in big:
                _post_and_put(service, rows)
    late = {path: 1e3 * percentile(probe.taken, 99) for path, probe in zip(ROUTES, probes, strict=True)}
    return judge(*((f"{path} {ms:.0f} ms", in_time(code, ms, 250)) for path, ms in late.items()))


def _post_and_put(service: Service, rows: list[Row]) -> None:
    """One long post, and four changes of items that wait behind it."""
    with ThreadPoolExecutor(5) as pool:
        post = pool.submit(service.post_all, rows, len(rows))
        time.sleep(0.3)
        puts = [pool.submit(service.status, "PUT", f"/v1/items/i{n}", {"title": "new"}) for n in range(4)]
        post.result()
        assert all(put.result() in (200, 429) for put in puts)


def erasure_of_many(code: Code) -> Finding:
    events = 2_000 if code.quick else 100_000
    taken: list[float] = []
    statuses: list[int] = []

    def post(service: Service) -> None:
        began = time.perf_counter()
        statuses.append(service.status("POST", "/v1/interactions", {"user": "small", "item": "i1"}))
        taken.append(time.perf_counter() - began)

    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        service.post_all(made_up_events(2_000))
        times = 1_700_000_000
        service.post_all(
            [{"user": "big", "item": f"i{n % 2_000}", "timestamp": times + n} for n in range(events)], 10_000
        )
        done, answers = threading.Event(), list[int]()

        def erase() -> None:
            answers.append(service.status("DELETE", "/v1/users/big", seconds=200))
            done.set()

        with ThreadPoolExecutor(64) as pool:
            began = time.perf_counter()
            erasing = threading.Thread(target=erase)
            erasing.start()
            deadline = time.monotonic() + 150
            while (not done.is_set() or len(taken) < 100) and time.monotonic() < deadline:
                pool.submit(post, service)
                time.sleep(0.02)
            seconds = time.perf_counter() - began
            erasing.join(200)
        gone = service.get("/v1/users/big").status
    p99 = 1e3 * percentile(taken, 99)
    return judge(
        (f"erased {events:,} events ({answers[0]}) in {seconds:.1f} s", answers == [200] and gone == 404),
        (f"p99 of {len(taken)} posts {p99:,.0f} ms", in_time(code, p99, 500)),
        (f"statuses {sorted(set(statuses))}", set(statuses) == {200}),
    )


ATTACKS = (
    Attack(
        "reads-behind-writes",
        "four PUTs behind one post of 10,000 events, four times; p99 of every read route",
        "p99 ≤ 250 ms",
        reads_behind_writes,
        240,
    ),
    Attack(
        "erasure-heavy",
        "erasing a user with 100,000 events while a post of one event comes every 20 ms",
        "p99 of posts ≤ 500 ms, all accepted",
        erasure_of_many,
        480,
    ),
)
