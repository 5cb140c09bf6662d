"""Reports of impressions and clicks, and the test against trending items, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from felrec.answers.statistics import FeedbackReceipt, Stats
from felrec.answers.types import (
    Recommendations,
    Refusal,
)
from felrec.service.engine.tickets import arm_of
from http_service.running import Open, Opened, checked

FEW = next(f"user-{n}" for n in range(1_000) if arm_of(f"user-{n}", 0.3) == "trending")
MANY = next(f"user-{n}" for n in range(1_000) if arm_of(f"user-{n}", 0.3) == "model")


def ask(service: Opened, user: str, **query: Any) -> Recommendations:
    return checked(Recommendations, service.get(f"/v1/users/{user}/recommendations", params=query).json())


def report(service: Opened, *rows: Any) -> FeedbackReceipt:
    answer = service.post("/v1/feedback", json=rows)
    assert answer.status_code == 200, answer.text
    return checked(FeedbackReceipt, answer.json())


def test_what_became_of_a_list(open_service: Open) -> None:
    service = open_service()
    found = ask(service, "1", k=3)
    assert found.arm is None  # no test is on
    done = report(
        service,
        {"ticket": found.ticket, "kind": "impression"},
        {"ticket": found.ticket, "kind": "click", "position": 2},
        {"ticket": found.ticket, "kind": "click", "position": 2},
        {"ticket": found.ticket, "kind": "click", "position": 3},
        {"ticket": "made-up", "kind": "click", "position": 0},
        {"ticket": found.ticket, "kind": "bought", "position": 0},
        {"kind": "click", "position": 0},
        7,
    )
    assert (done.accepted, done.repeated) == (3, 1)
    assert [one.row for one in done.rejected] == [3, 4, 5, 6, 7]
    assert "the list has 3 places" in done.rejected[0].reason
    assert "unknown ticket" in done.rejected[1].reason
    told = checked(Stats, service.get("/v1/stats").json()).feedback
    (arm,) = told.arms
    assert (arm.arm, arm.lists.clicked, arm.lists.of) == ("outside", 1, 1)
    assert [(place.place, place.clicked, place.of) for place in arm.places] == [(0, 0, 1), (1, 0, 1), (2, 1, 1)]
    assert told.difference is None
    text = service.get("/metrics").text
    assert 'felrec_impressions_total{arm="outside",position="0"} 1.0' in text
    assert 'felrec_clicks_total{arm="outside",position="2"} 1.0' in text


def test_lists_of_sessions_and_pages_have_tickets(open_service: Open) -> None:
    service = open_service()
    session = checked(Recommendations, service.post("/v1/recommendations", json={"items": ["1"], "k": 2}).json())
    page = ask(service, "1", k=2, offset=30)
    done = report(
        service,
        {"ticket": session.ticket, "kind": "impression"},
        {"ticket": page.ticket, "kind": "click", "position": 1},
    )
    assert (done.accepted, done.repeated) == (2, 0)
    assert 'felrec_clicks_total{arm="outside",position="20+"} 1.0' in service.get("/metrics").text


def test_a_share_of_users_gets_trending_items(open_service: Open) -> None:
    service = open_service(ab_trending=0.3)
    trending = [item["id"] for item in service.get("/v1/items?sort=trending&limit=5").json()["items"]]
    lists = {user: ask(service, user, k=5, exclude_seen=False) for user in (FEW, MANY)}
    assert (lists[FEW].arm, lists[MANY].arm) == ("trending", "model")
    assert [item.id for item in lists[FEW].items] == trending
    assert [item.id for item in lists[MANY].items] != trending
    assert ask(service, FEW, k=5, exclude_seen=False).items == lists[FEW].items
    explained = service.get(f"/v1/users/{FEW}/recommendations?why=true").json()
    assert all(item["why"] == [] for item in explained["items"])
    for found in lists.values():
        report(service, {"ticket": found.ticket, "kind": "impression"})
    report(service, {"ticket": lists[MANY].ticket, "kind": "click", "position": 0})
    told = checked(Stats, service.get("/v1/stats").json()).feedback
    assert (told.trending_share, [arm.arm for arm in told.arms]) == (0.3, ["model", "trending"])
    assert told.difference is not None
    assert told.difference.value == 1.0
    assert told.difference.low < 0.5  # of one list each


def test_counts_go_on_after_a_restart(open_service: Open) -> None:
    service = open_service(ab_trending=0.3)
    found = ask(service, MANY, k=2)
    report(service, {"ticket": found.ticket, "kind": "click", "position": 0})
    service.stop()
    service = open_service(ab_trending=0.3)
    assert report(service, {"ticket": found.ticket, "kind": "click", "position": 1}).repeated == 0
    (arm,) = checked(Stats, service.get("/v1/stats").json()).feedback.arms
    assert (arm.arm, arm.impressions.clicked) == ("model", 2)


def test_neither_metrics_nor_the_store_know_whose_list_it_was(open_service: Open) -> None:
    service = open_service(ab_trending=0.3)
    service.post("/v1/interactions", json={"user": "ada-lovelace", "item": "1"})
    found = ask(service, "ada-lovelace")
    report(service, {"ticket": found.ticket, "kind": "click", "position": 0})
    assert "lovelace" not in service.get("/metrics").text
    service.delete("/v1/users/ada-lovelace")
    service.stop()
    for file in service.store.path.parent.iterdir():
        assert b"lovelace" not in file.read_bytes()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "text/plain", 415),
        (b"[", "application/json", 422),
        (b'{"ticket": "x", "kind": "click", "position": 0}', "application/json", 422),
        (b"[" + b",".join([b"1"] * 10_001) + b"]", "application/json", 413),
    ],
)
def test_what_is_no_report_is_refused(service: Opened, body: bytes, kind: str, status: int) -> None:
    answer = service.post("/v1/feedback", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status
    checked(Refusal, answer.json())
