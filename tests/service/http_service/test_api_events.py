"""POST /v1/interactions: what is taken, what is refused and why, and that a repeated post counts once."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from felrec.answers.statistics import Stats
from felrec.answers.types import (
    Receipt,
    Refusal,
)
from felrec.errors import StoreBusy
from felrec.service.engine.clock import SteadyClock
from http_service.running import Open, Opened, checked

NDJSON = {"Content-Type": "application/x-ndjson"}


def test_one_event_makes_a_new_item_recommendable(service: Opened) -> None:
    before = service.count()
    answer = service.post("/v1/interactions", json={"user": "ada", "item": "brand new"})
    assert answer.status_code == 200
    assert answer.json() == {"accepted": 1, "late": 0, "rejected": [], "events": before + 1}
    found = service.get("/v1/users/somebody/recommendations", params={"k": 1000}).json()
    assert "brand new" in [item["id"] for item in found["items"]]
    assert service.get("/v1/users/ada").json()["history"][0]["id"] == "brand new"


def test_a_list_and_lines(service: Opened) -> None:
    rows = [{"user": "bob", "item": f"i{n}"} for n in range(5)]
    assert service.post("/v1/interactions", json=rows).json()["accepted"] == 5
    lines = "\n".join(map(json.dumps, rows)) + "\n\n"
    assert service.post("/v1/interactions", content=lines, headers=NDJSON).json()["accepted"] == 5
    assert service.get("/v1/users/bob").json()["events"] == 10


def test_strict_posts_refuse_unknown_fields(service: Opened) -> None:
    rows = [{"user_id": "ada", "item_id": "a"}, {"user": "ada", "item": "a", "price": 3}]
    strict = checked(Receipt, service.post("/v1/interactions?strict=true", json=rows).json())
    assert (strict.accepted, strict.ignored) == (1, None)
    assert [(row.row, "unknown field 'price'" in row.reason) for row in strict.rejected] == [(1, True)]
    headers = {"Idempotency-Key": "with a price"}
    for _ in range(2):  # the second answer is the stored one
        receipt = checked(Receipt, service.post("/v1/interactions", json=rows, headers=headers).json())
        assert (receipt.accepted, receipt.ignored) == (2, {"price": 1})


def test_good_rows_are_taken_and_bad_ones_refused_with_the_reason(service: Opened) -> None:
    before = service.count()
    rows = [
        {"user": "ada", "item": "a"},
        {"user": "", "item": "a"},
        {"user": "ada"},
        {"user": "ada", "item": "a", "timestamp": time.time() + 3600},
        {"user": "ada", "item": "a", "timestamp": "yesterday"},
        {"user": "ada", "item": "a", "price": 3},
        {"user": "x" * 257, "item": "a"},
        {"user": "nul\u0000", "item": "a"},
        {"user": True, "item": "a"},
        {"user": 7, "item": 8, "timestamp": "2020-01-01T00:00:00Z"},
        "ada",
        {"user": "ada", "item": "a", "timestamp": 1767225600000},
    ]
    answer = service.post("/v1/interactions", json=rows).json()
    receipt = checked(Receipt, answer)
    reasons = {row.row: row.reason for row in receipt.rejected}
    assert (receipt.accepted, receipt.late, receipt.events) == (3, 1, before + 3)
    assert receipt.ignored == {"price": 1}
    assert sorted(reasons) == [1, 2, 3, 4, 6, 7, 8, 10, 11]
    for row, words in {
        1: "non-empty", 2: "item", 3: "future", 4: "ISO 8601", 6: "256", 7: "control", 11: "milliseconds",
    }.items():  # fmt: skip
        assert words in reasons[row]
    assert service.get("/v1/users/7").json()["history"][0]["id"] == "8"


def test_a_jump_of_the_machines_clock_lets_no_event_in_from_the_future(open_service: Open) -> None:
    ahead = [0.0]
    service = open_service(clock=SteadyClock(lambda: time.time() + ahead[0]))
    ahead[0], in_a_day = 1e6, time.time() + 86_400
    answer = service.post("/v1/interactions", json=[{"user": "ada", "item": "a", "timestamp": in_a_day}])
    assert answer.status_code == 422
    assert "future" in answer.text
    assert checked(Receipt, service.post("/v1/interactions", json={"user": "ada", "item": "a"}).json()).accepted == 1
    stats = checked(Stats, service.get("/v1/stats").json())
    assert abs(stats.clock - time.time()) < 3_600
    assert "has jumped" in str(stats.clock_problem)
    assert "felrec_clock_right 0.0" in service.get("/metrics").text


def test_bad_lines_are_refused_alone(service: Opened) -> None:
    body = b'{"user": "ada", "item": "a"}\nnot json\n\n{"user": "ada", "item": "\\ud800"}\n\xff\n'
    answer = service.post("/v1/interactions", content=body, headers=NDJSON).json()
    assert answer["accepted"] == 1
    assert [row["row"] for row in answer["rejected"]] == [1, 3, 4]


@pytest.mark.parametrize("body", [b"", b"{", b"[1, NaN", b"\xff\xfe", b'{"user": "a", "item": "b"} x', b"[" * 100_000])
def test_a_body_that_is_no_json_is_refused(service: Opened, body: bytes) -> None:
    answer = service.post("/v1/interactions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "JSON" in checked(Refusal, answer.json()).error.message


def test_nothing_good_is_422_and_says_why(service: Opened) -> None:
    answer = service.post("/v1/interactions", json={"user": "ada", "item": None})
    assert answer.status_code == 422
    refusal = checked(Refusal, answer.json())
    assert "row 0: item" in refusal.error.message
    assert refusal.accepted == 0
    assert refusal.rejected is not None
    assert service.post("/v1/interactions", json=7).status_code == 422


def test_an_empty_list_is_fine(service: Opened) -> None:
    answer = service.post("/v1/interactions", json=[])
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 0


def test_limits_of_rows_and_bytes(service: Opened) -> None:
    before = service.count()
    many = [{"user": "a", "item": "b"}] * 10_001
    assert service.post("/v1/interactions", json=many).status_code == 413
    long = b'{"user": "a", "item": "b"}' + b" " * (8 * 2**20)
    headers = {"Content-Type": "application/json"}
    assert service.post("/v1/interactions", content=long, headers=headers).status_code == 413
    pieces = (b" " * 2**20 for _ in range(9))  # without a length beforehand
    answer = service.post("/v1/interactions", content=pieces, headers=headers)
    assert answer.status_code == 413
    assert "8,388,608" in answer.json()["error"]["message"]
    assert service.count() == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_other_content_types_are_refused(service: Opened, kind: str) -> None:
    answer = service.post("/v1/interactions", content=b"{}", headers={"Content-Type": kind} if kind else {})
    assert answer.status_code == 415


def test_packed_bodies_are_refused_and_said_to_be(service: Opened) -> None:
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    refused = service.post("/v1/interactions", content=gzip.compress(b"[]"), headers=packed)
    assert (refused.status_code, "Content-Encoding: gzip" in refused.text) == (415, True)


def test_blank_lines_are_no_rows(service: Opened) -> None:
    lines = '{"user": "ada", "item": "a"}\n\n' * 6_000
    assert service.post("/v1/interactions", content=lines, headers=NDJSON).json()["accepted"] == 6_000


def test_a_repeated_post_counts_once(open_service: Open) -> None:
    service = open_service()
    before = service.count()
    headers, rows = {"Idempotency-Key": "order-1"}, [{"user": "ada", "item": "a"}, {"user": "ada"}]
    first = service.post("/v1/interactions", json=rows, headers=headers)
    again = service.post("/v1/interactions", json=rows, headers=headers)
    assert first.json() == again.json()
    assert service.count() == before + 1
    other = service.post("/v1/interactions", json={"user": "eve", "item": "a"}, headers=headers)
    assert other.status_code == 409
    assert service.count() == before + 1


@pytest.mark.parametrize("key", ["", "x" * 257])
def test_the_key_is_checked(service: Opened, key: str) -> None:
    answer = service.post("/v1/interactions", json={"user": "ada", "item": "a"}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert "idempotency-key" in answer.json()["error"]["message"]


def test_late_events_are_counted(service: Opened) -> None:
    service.post("/v1/interactions", json={"user": "ada", "item": "a"})
    answer = service.post("/v1/interactions", json={"user": "ada", "item": "b", "timestamp": 1.5}).json()
    assert (answer["accepted"], answer["late"]) == (1, 1)
    history = service.get("/v1/users/ada").json()["history"]
    assert (history[0]["id"], history[0]["timestamp"]) == ("b", 1.5)


def test_events_survive_a_restart(open_service: Open) -> None:
    service = open_service()
    service.post("/v1/interactions", json=[{"user": "ada", "item": f"i{n}"} for n in range(20)])
    url = "/v1/users/ada/recommendations?k=50"
    before = service.get(url).json()["items"]
    service.stop()
    assert open_service().get(url).json()["items"] == before


def test_a_store_that_another_process_writes_to_is_busy_for_a_moment(
    service: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise StoreBusy("another process is writing; try again")

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "commit", busy)
        refused = service.post("/v1/interactions", json=[{"user": "ada", "item": "tea"}])
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert "nothing was stored" in refused.text
    assert service.post("/v1/interactions", json=[{"user": "ada", "item": "tea"}]).status_code == 200
