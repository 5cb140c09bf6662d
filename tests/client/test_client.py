"""Both clients against a real service, and against one that is busy, stopping or not there."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from felrec.client import AsyncClient, Client, calls
from felrec.client.events import parts_of
from felrec.client.posts import MOST_BYTES, MOST_ROWS
from felrec.client.retries import Retries, perhaps_done
from felrec.errors import ConfigError, DataError, ServiceError


def test_everything_once(url: str) -> None:
    with Client(url) as shop:
        moments = [1_767_225_600.5, datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:01Z"]
        events: Any = [("ada", "a/b"), ("ada", 7, moments[0]), ("bob", "a/b", moments[1]), ("bob", "c", moments[2])]
        receipt = shop.record([*events, ("", "nothing"), ("bob", "c", "yesterday")])
        assert (receipt.accepted, [row.row for row in receipt.rejected]) == (4, [4, 5])
        assert shop.put_item("a/b", title="Song", tags=["folk", "new"]).title == "Song"
        assert shop.item("a/b").events == 2
        found = shop.recommend("ada", 3, tags=["folk"], exclude_seen=False, why=True)
        assert [(item.id, item.title, item.tags) for item in found.items] == [("a/b", "Song", ("folk", "new"))]
        assert {own.id for reason in found.items[0].why for own in reason.items} <= {"a/b", "7"}
        assert found.items[0].why[0].text
        assert len(shop.recommend("nobody", 5).items) == 5
        assert not shop.recommend("nobody", 5).known
        assert shop.recommend("bob", candidates=[]).items == ()
        assert {item.id for item in shop.recommend("eve", candidates=["a/b", 7]).items} == {"a/b", "7"}
        assert len(shop.recommend_session(["a/b"], 4, candidates=None).items) == 4
        assert shop.recommend_session(["a/b", "never seen"], 4).ignored == ("never seen",)
        assert len(shop.similar("a/b", 3).matches) == 3
        assert len(shop.audience("a/b", 3).matches) == 3
        assert len(shop.neighbours("ada", 3).matches) == 3
        assert [past.id for past in shop.user("ada").history] == ["a/b", "7"]
        assert shop.erase_user("ada").events == 2
        shop.delete_item("a/b")
        with pytest.raises(ServiceError, match="the item was deleted"):
            shop.item("a/b")
        assert shop.stats()["model"] == "felrec-q"


def test_the_same_to_await(url: str) -> None:
    async def use() -> None:
        async with AsyncClient(url) as shop:
            receipts = await asyncio.gather(*(shop.record([(f"async-{n}", "x")]) for n in range(20)))
            assert sum(receipt.accepted for receipt in receipts) == 20
            found = await shop.recommend("async-1", 3)
            assert found.known
            assert (await shop.recommend_session(["x"], 2)).items
            assert (await shop.erase_user("async-1")).events == 1
            with pytest.raises(ServiceError, match="no event"):
                await shop.user("async-1")

    asyncio.run(use())


def test_both_clients_can_do_the_same() -> None:
    def methods(kind: type) -> dict[str, Any]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: inspect.signature(f).parameters for name, f in found if not name.startswith("_")}

    assert methods(Client).keys() == methods(AsyncClient).keys()
    for name, parameters in methods(Client).items():
        assert parameters == methods(AsyncClient)[name], name


def test_an_event_without_an_item_is_not_sent() -> None:
    with pytest.raises(DataError, match=r"event \('ada',\): give \(user, item\) or \(user, item, time\)"):
        parts_of([("ada",)], None)


def test_a_refusal_is_told_with_its_id(url: str) -> None:
    with Client(url) as shop, pytest.raises(ServiceError) as refused:
        shop.user("nobody at all")
    error = refused.value
    assert (error.status, error.code) == (404, "not_found")
    assert len(error.request_id) == 32


def test_a_comma_in_a_candidate_is_part_of_it(url: str) -> None:
    with Client(url) as shop:
        shop.record([("carla", "x,y"), ("carla", "x")])
        assert [item.id for item in shop.recommend("dan", candidates=["x,y"]).items] == ["x,y"]


@contextmanager
def answering(*answers: tuple[int, dict[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers in turn; its address, and the idempotency keys it was sent."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_DELETE(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            status, headers = answers[len(keys)]
            keys.append(self.headers["Idempotency-Key"])
            good = {"accepted": 1, "late": 0, "rejected": [], "events": 1, "added later": True}
            bad = {"error": {"code": "overloaded", "message": "busy", "request_id": "r"}}
            body = json.dumps(good if status == 200 else bad).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", keys
        finally:
            server.shutdown()
            thread.join()


def test_a_busy_service_is_tried_again_with_the_same_key() -> None:
    with answering((429, {"Retry-After": "0"}), (503, {"Retry-After": "0"}), (200, {})) as (url, keys):
        with Client(url) as shop:
            assert shop.record([("a", "b")]).accepted == 1
        assert len(keys) == 3
        assert len(set(keys)) == 1

    async def use(url: str) -> int:
        async with AsyncClient(url) as shop:
            return (await shop.record([("a", "b")], key="mine")).accepted

    with answering((502, {}), (504, {}), (200, {})) as (url, keys):  # its proxy, while it starts again
        assert asyncio.run(use(url)) == 1
        assert keys == ["mine"] * 3


def test_what_an_attempt_before_has_deleted_is_gone() -> None:
    with answering((502, {}), (404, {}), (504, {}), (404, {})) as (url, _), Client(url) as shop:
        shop.delete_item("a")
        assert shop.erase_user("b").events == 0
    refused = {"Retry-After": "0"}  # nothing was done, so nothing is gone
    for first in ([], [(429, refused)], [(503, refused)]):
        with answering(*first, (404, {})) as (url, _), Client(url) as shop, pytest.raises(ServiceError):
            shop.erase_user("never came")


def test_what_is_no_answer_of_felrec_is_said_in_words() -> None:
    with answering((200, {})) as (url, _), Client(url) as shop, pytest.raises(ServiceError, match="is it felrec"):
        shop.erase_user("a")  # the answer is of another kind of request


@pytest.mark.parametrize(
    ("event", "key", "words"),
    [
        (("ada", "x", float("nan")), None, "not a number"),
        (("ada", "x", ["now"]), None, "not a number"),
        (("ada", "x"), "schlüssel", "printable ASCII"),
        ("ab", None, "event 'ab': give"),
        ({"user": "ada"}, None, "give user, item and, unless it is now, timestamp"),
        ({"user": "ada", "user_id": "ada", "item": "x"}, None, "each once"),
        ({"user": "ada", "item": "x", "timestamp": pd.NaT}, None, "not a number"),
        (("ada", 1.5), None, "id 1.5: give a string or a whole number"),
        (("ada", "\ud83d"), None, "give a string"),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(event: Any, key: str | None, words: str) -> None:
    with pytest.raises(DataError, match=words):
        parts_of([event], key)


def test_ids_of_numpy_and_no_time_are_fine() -> None:
    events: Any = [(np.int64(7), "x", None), ("ada", np.uint8(3), np.float32(5.0))]
    (rows,) = parts_of(events, "k").rows
    assert json.loads(json.dumps(rows)) == [{"user": 7, "item": "x"}, {"user": "ada", "item": 3, "timestamp": 5.0}]


def test_a_string_is_not_taken_for_its_letters() -> None:
    with pytest.raises(DataError, match=r"tags='blue': give a list, \['blue'\]"):
        calls.put_item("s1", tags="blue")
    with pytest.raises(DataError, match="candidates='s1'"):
        calls.recommend("ada", candidates="s1")
    with pytest.raises(DataError, match="items='s1'"):
        calls.recommend_session("s1")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_id_that_cannot_stand_in_a_path_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="cannot stand in an address"):
        calls.erase_user(name)


def test_a_key_or_address_that_cannot_be_sent_is_refused_without_showing_the_key() -> None:
    for key in ("ge\nheim", "geheimnis-ü"):
        with pytest.raises(ConfigError, match="copy it again") as refused:
            Client("http://127.0.0.1:1", key=key)
        assert "heim" not in str(refused.value)
    with pytest.raises(ConfigError, match="is no address of a service"):
        Client("localhost:8000")
    with Client("http://127.0.0.1:1") as shop, pytest.raises(DataError, match="fewer or shorter candidates"):
        shop.recommend("ada", candidates=["x" * 100] * 900)


def test_a_key_read_from_a_file_may_end_in_a_newline(url: str) -> None:
    with Client(url, key="abc\n") as shop:
        assert shop.stats()["ready"]


def test_it_gives_up_in_the_end() -> None:
    with answering(*[(429, {"Retry-After": "0"})] * 3) as (url, keys), Client(url, retries=2) as shop:
        with pytest.raises(ServiceError, match="busy") as refused:
            shop.record([("a", "b")])
        assert refused.value.status == 429
        assert len(keys) == 3


def test_other_refusals_are_not_tried_again() -> None:
    with answering((507, {})) as (url, keys), Client(url) as shop:
        with pytest.raises(ServiceError):
            shop.record([("a", "b")])
        assert len(keys) == 1


def test_nobody_there_is_said_in_words() -> None:
    with answering() as (url, _):
        pass
    with Client(url, retries=1) as shop, pytest.raises(ServiceError, match="is felrec serve running there") as refused:
        shop.stats()
    assert refused.value.status == 0


def test_the_client_needs_no_torch() -> None:
    code = "import sys, felrec.client; assert not {'torch', 'fastapi', 'polars'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_an_attempt_before_has_deleted_is_gone_also_to_await() -> None:
    async def use(url: str) -> int:
        async with AsyncClient(url) as shop:
            await shop.delete_item("a")
            return (await shop.erase_user("b")).events

    with answering((502, {}), (404, {}), (504, {}), (404, {})) as (url, _):
        assert asyncio.run(use(url)) == 0


def test_how_long_it_waits() -> None:
    def told(seconds: str) -> httpx.Response:
        return httpx.Response(429, headers={"Retry-After": seconds})

    retries = Retries()
    for answer, attempt, least in (
        (told("7"), 0, 7.0),
        (told("3600"), 0, 30.0),  # never longer than half a minute
        (told("Wed, 21 Oct 2026 07:28:00 GMT"), 1, 0.2),
        (None, 0, 0.1),  # nobody answered
        (None, 3, 0.8),
        (httpx.Response(502), 2, 0.4),
    ):
        wait = retries.wait(attempt, answer)
        assert wait is not None
        assert least <= wait <= 1.25 * least
    assert retries.wait(4, None) is None
    assert retries.wait(0, httpx.Response(404)) is None


def test_without_an_answer_it_may_have_been_done() -> None:
    assert perhaps_done(None)
    assert [perhaps_done(httpx.Response(status)) for status in (502, 504, 429, 503)] == [True, True, False, False]


WEDNESDAY = datetime(2026, 1, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "events",
    [
        [("ada", 7, WEDNESDAY), ("bob", 8, WEDNESDAY)],
        [{"user": "ada", "item": 7, "timestamp": WEDNESDAY}, {"user_id": "bob", "item_id": 8, "time": WEDNESDAY}],
        pl.DataFrame({"item": [7, 8], "user_id": ["ada", "bob"], "timestamp": [WEDNESDAY] * 2, "price": [1.5, 2.5]}),
        pd.DataFrame({"user": ["ada", "bob"], "item_id": [7, 8], "time": [WEDNESDAY] * 2}, index=[5, 3]),
    ],
    ids=["tuples", "dictionaries", "polars", "pandas"],
)
def test_events_as_people_have_them(events: Any) -> None:
    (rows,) = parts_of(events, None).rows
    assert json.loads(json.dumps(rows)) == [
        {"user": "ada", "item": 7, "timestamp": "2026-01-07T12:00:00+00:00"},
        {"user": "bob", "item": 8, "timestamp": "2026-01-07T12:00:00+00:00"},
    ]


def test_no_time_is_now_and_other_fields_are_for_the_service_to_judge(url: str) -> None:
    assert parts_of(pl.DataFrame({"user": ["ada"], "item": ["x"], "time": [None]}), None).rows == [
        [{"user": "ada", "item": "x"}]
    ]
    with pytest.raises(DataError, match="the frame has the columns who, item; name them user, item"):
        parts_of(pd.DataFrame({"who": ["ada"], "item": ["x"]}), None)
    rows = [{"user": "ada", "item": "x", "no such field": 1}] * (MOST_ROWS + 2)
    with Client(url) as shop:
        assert shop.record(rows).ignored == {"no such field": MOST_ROWS + 2}
        assert shop.record([("ada", "x")]).ignored is None


def test_long_lists_are_cut_and_told_as_one(url: str) -> None:
    events = [(f"cut-{n}", "x") for n in range(2 * MOST_ROWS + 5)]
    events[3] = events[MOST_ROWS + 1] = events[-1] = ("cut", "")  # which the service rejects
    with Client(url) as shop:
        before = shop.stats()["events"]
        receipt = shop.record(events, key="long")
        assert receipt.accepted == len(events) - 3
        assert [one.row for one in receipt.rejected] == [3, MOST_ROWS + 1, len(events) - 1]
        assert receipt.events == shop.stats()["events"] == before + receipt.accepted
        assert shop.record(events, key="long") == receipt  # each part has its own key, and counts once

    async def use() -> int:
        async with AsyncClient(url) as shop:
            return (await shop.record(events, key="long")).accepted

    assert asyncio.run(use()) == receipt.accepted


def test_posts_of_long_ids_have_fewer_rows(url: str) -> None:
    events = [("ü" * 256, "茶" * 256)] * 6_000
    parts = parts_of(events, None)
    assert [len(rows) for rows in parts.rows] == [MOST_BYTES // 2_148, 6_000 - MOST_BYTES // 2_148]
    with Client(url) as shop:
        assert shop.record(events).accepted == 6_000


def test_an_error_in_between_says_how_to_go_on() -> None:
    events = [("a", "b")] * (MOST_ROWS + 1)
    with answering((200, {}), (507, {})) as (url, keys), Client(url) as shop:
        with pytest.raises(ServiceError, match=r"busy \(10,000 of 10,001 rows .* with key='mine'\)") as refused:
            shop.record(events, key="mine")
        assert keys == ["mine", "mine-1"]
        assert refused.value.status == 507


def test_the_client_knows_the_rules(url: str) -> None:
    with Client(url) as shop:
        shop.record([(f"user {n}", f"thing {n % 5}") for n in range(30)])
        shop.put_item("thing 1", tags=["a"], expires=datetime(2020, 1, 1, tzinfo=UTC))
        shop.put_item("thing 2", tags=["a"], variant_of="thing 3")
        shop.put_item("cold", title="Cold", available_from=0.0)
        found = shop.recommend("user 1", 3, exclude=["thing 4"], no_tags=["z"], per_tag=2, exclude_seen=False)
        assert not {"thing 1", "thing 4"} & {item.id for item in found.items}
        assert shop.recommend("user 1", 2, explore=1).items[0].explored
        assert shop.recommend_session(["thing 0"], 3, exclude=["thing 0"], offset=1).items
        listed = shop.list_items("popular", 3, exclude=["thing 1"], hours=1)
        assert listed.sort == "popular"
        assert "thing 1" not in {item.id for item in listed.items}


def test_many_items_from_dictionaries_and_frames(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.client.posts.MOST_ROWS", 2)
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    with Client(url) as shop:
        rows: list[Any] = [
            {"id": np.int64(90), "title": "Tea", "tags": ("hot",), "expires": moment},
            {"id": "b"},
            {"id": "c"},
        ]
        done = shop.put_items([*rows, {"title": "no id", "price": 2}, {"id": "e", "price": 2}])
        assert (done.accepted, done.rejected[0].row, done.ignored) == (4, 3, {"price": 1})
        assert (shop.item(90).tags, shop.item(90).expires) == (("hot",), moment.timestamp())
        frame = pd.DataFrame(
            {"item_id": [1, 2], "name": ["One", None], "expires": [moment, pd.NaT], "tags": ["a|b", None]}
        )
        assert shop.put_items(frame).accepted == 2
        assert (shop.item(1).title, shop.item(1).tags, shop.item(2).title) == ("One", ("a", "b"), None)
        assert shop.put_items(pl.DataFrame({"id": ["p"], "tags": [["x", "y"]]})).accepted == 1
        assert shop.item("p").tags == ("x", "y")
        assert shop.put_items([]).accepted == 0
        with pytest.raises(DataError, match="give a dictionary"):
            shop.put_items(["tea"])

    async def use() -> int:
        async with AsyncClient(url) as other:
            return (await other.put_items([{"id": "z"}])).accepted

    assert asyncio.run(use()) == 1


def test_reports_of_impressions_and_clicks(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.client.posts.MOST_ROWS", 2)
    with Client(url) as shop:
        ticket = shop.recommend("ada", 3).ticket
        assert ticket is not None
        click = {"ticket": ticket, "kind": "click", "position": 2}
        done = shop.report([(ticket, "impression"), (ticket, "click", 1), (ticket, "click", 9), click, click])
        assert (done.accepted, done.repeated, [one.row for one in done.rejected]) == (4, 1, [2])
        with pytest.raises(DataError, match="give \\(ticket, kind\\)"):
            shop.report(["click"])  # type: ignore[list-item]

    async def use() -> int:
        async with AsyncClient(url) as other:
            return (await other.report([(ticket, "click", 0)])).accepted

    assert asyncio.run(use()) == 1
