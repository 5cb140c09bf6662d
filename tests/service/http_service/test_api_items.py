"""Posts of many items: each row is accepted, or rejected with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from felrec.answers.types import Item, ItemsReceipt, Refusal
from felrec.service.engine.limits import Limits
from http_service.running import Open, Opened, checked


def put(service: Opened, rows: Any, **query: Any) -> ItemsReceipt:
    answer = service.post("/v1/items", json=rows, params=query)
    assert answer.status_code == 200, answer.text
    return checked(ItemsReceipt, answer.json())


def test_good_rows_are_stored_and_bad_ones_rejected_with_reasons(service: Opened) -> None:
    rows: list[Any] = [
        {"id": "bulk-1", "title": "Tea", "tags": ["hot", "drink"], "expires": "2030-01-01T00:00:00Z"},
        {"title": "no id"},
        7,
        {"id": "bulk-2", "tags": [""]},
        {"id": "bulk-3", "available": "perhaps"},
        {"id": 44, "variant_of": "bulk-1", "available": False},
        {"id": "bulk-4", "expires": "soon"},
        {"id": "x" * 257},
    ]
    done = put(service, rows)
    assert done.accepted == 2
    assert [one.row for one in done.rejected] == [1, 2, 3, 4, 6, 7]
    reasons = [one.reason for one in done.rejected]
    assert reasons[0] == "id: missing; name it id, or item_id"
    assert reasons[1].startswith("give an object with an id")
    assert [reason.split(":")[0] for reason in reasons[2:]] == ["tags", "available", "expires", "id"]
    tea = checked(Item, service.get("/v1/items/bulk-1").json())
    assert (tea.title, tea.tags, tea.expires) == ("Tea", ("hot", "drink"), 1893456000.0)
    other = checked(Item, service.get("/v1/items/44").json())
    assert (other.variant_of, other.available) == ("bulk-1", False)
    assert service.count("described_items") == done.described_items


def test_the_names_of_columns_are_understood_and_others_counted(service: Opened) -> None:
    row = {"product_id": 5001, "Name": "Milk", "genres": "drink| cold |", "available": "no", "expires": "", "price": 2}
    done = put(service, row)
    assert (done.accepted, done.ignored) == (1, {"price": 1})
    milk = checked(Item, service.get("/v1/items/5001").json())
    assert (milk.title, milk.tags, milk.available, milk.expires) == ("Milk", ("drink", "cold"), False, None)
    refused = service.post("/v1/items?strict=true", json=[row])
    assert refused.status_code == 422
    assert "unknown field 'price'" in checked(Refusal, refused.json()).error.message


def test_one_per_line_and_the_last_row_of_an_item_counts(service: Opened) -> None:
    body = b'{"id": "line-1", "title": "old"}\n\nnot json\n{"id": "line-1", "title": "new"}\n'
    answer = service.post("/v1/items", content=body, headers={"Content-Type": "application/x-ndjson"})
    done = checked(ItemsReceipt, answer.json())
    assert (done.accepted, [(one.row, one.reason) for one in done.rejected]) == (2, [(2, "not valid JSON in UTF-8")])
    assert service.get("/v1/items/line-1").json()["title"] == "new"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"[]", "text/plain", 415),
        (b"[", "application/json", 422),
        (b'[{"title": "no id"}]', "application/json", 422),
        (b"[" + b",".join([b"1"] * 10_001) + b"]", "application/json", 413),
    ],
)
def test_what_is_no_list_of_items_is_refused(service: Opened, body: bytes, kind: str, status: int) -> None:
    answer = service.post("/v1/items", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status
    checked(Refusal, answer.json())


def test_an_empty_list_changes_nothing(service: Opened) -> None:
    before = service.count("described_items")
    assert put(service, []) == ItemsReceipt(0, (), before)


def test_ten_thousand_at_once(open_service: Open) -> None:
    service = open_service()
    rows = [{"id": f"i{n}", "title": f"Title number {n}", "tags": [f"t{n % 50}"]} for n in range(10_000)]
    assert put(service, rows).accepted == 10_000
    assert service.get("/v1/items/i9999").json()["title"] == "Title number 9999"


def test_at_the_limit_new_items_are_rejected(open_service: Open) -> None:
    service = open_service(limits=Limits(items=1))
    done = put(service, [{"id": "new-1"}, {"id": "new-2"}, {"id": "new-2"}, {"id": ""}])
    assert done.accepted == 1
    assert [one.row for one in done.rejected] == [1, 2, 3]
    assert "limit of 1 items" in done.rejected[0].reason
    refused = service.post("/v1/items", json=[{"id": "new-3"}])
    assert refused.status_code == 507
    assert checked(Refusal, refused.json()).error.code == "capacity_reached"
