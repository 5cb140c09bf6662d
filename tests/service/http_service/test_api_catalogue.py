"""Items and users themselves, and ids that are hard on paths."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from felrec.answers.types import Erasure, FoundItems, FoundUsers, Item, User
from http_service.running import Opened, checked

ODD = [
    "a/b",
    "a/similar",
    "../etc/passwd",
    "a b",
    "50%",
    "%2F",
    "naïve",
    "🎵",
    "'; DROP TABLE events; --",
    "a?b#c",
    "a+b",
    "\\",
]


@pytest.mark.parametrize("odd", ODD)
def test_odd_ids_are_ids_like_any_other(service: Opened, odd: str) -> None:
    path = quote(odd, safe="")
    assert service.post("/v1/interactions", json={"user": odd, "item": odd}).json()["accepted"] == 1
    assert service.put(f"/v1/items/{path}", json={"title": odd}).json()["id"] == odd
    assert checked(Item, service.get(f"/v1/items/{path}").json()).title == odd
    assert checked(User, service.get(f"/v1/users/{path}").json()).id == odd
    assert service.get(f"/v1/users/{path}/recommendations").json()["user"] == odd
    assert service.get(f"/v1/items/{path}/similar").status_code == 200
    assert checked(Erasure, service.delete(f"/v1/users/{path}").json()).events == 1
    assert service.get(f"/v1/users/{path}").status_code == 404


@pytest.mark.parametrize("path", ["%00", "%ff", "a%0Ab", "x" * 257, quote("🎵" * 257)])
def test_what_cannot_be_an_id_is_refused(service: Opened, path: str) -> None:
    for url in (f"/v1/users/{path}", f"/v1/users/{path}/recommendations", f"/v1/items/{path}"):
        answer = service.get(url)
        assert answer.status_code == 422, url
        assert answer.json()["error"]["message"].startswith("id: ")


def test_an_item_from_its_first_word_to_its_last(service: Opened) -> None:
    said = service.put("/v1/items/new", json={"title": "New", "tags": ["a", "b"]})
    assert checked(Item, said.json()) == Item(id="new", title="New", tags=("a", "b"), available=True, events=0)
    service.post("/v1/interactions", json={"user": "ada", "item": "new"})
    assert service.get("/v1/items/new").json()["events"] == 1
    assert service.delete("/v1/items/new").status_code == 204
    found = service.get("/v1/users/bob/recommendations?k=1000").json()
    assert "new" not in [item["id"] for item in found["items"]]
    assert service.delete("/v1/items/never").status_code == 404


@pytest.mark.parametrize(
    "body",
    [{"title": 7}, {"tags": "a"}, {"tags": [""]}, {"tags": ["x"] * 101}, {"price": 1}, {"title": "x" * 1001}, []],
)
def test_attributes_are_checked(service: Opened, body: object) -> None:
    assert service.put("/v1/items/a", json=body).status_code == 422


def test_search(service: Opened) -> None:
    service.post("/v1/interactions", json=[{"user": "zora", "item": "zither"}, {"user": "zoe", "item": "zebra"}])
    service.put("/v1/items/zither", json={"title": "Quince"})
    users = checked(FoundUsers, service.get("/v1/users?prefix=zo").json()).users
    assert [(user.id, user.events) for user in users] == [("zoe", 1), ("zora", 1)]
    items = checked(FoundItems, service.get("/v1/items?prefix=qui").json()).items
    assert [(item.id, item.title) for item in items] == [("zither", "Quince")]
    assert len(service.get("/v1/users?sample=true&limit=3").json()["users"]) == 3
    assert service.get("/v1/users?limit=1001").status_code == 422


def test_a_deleted_item_says_so_until_it_is_put_again(service: Opened) -> None:
    service.post("/v1/interactions", json={"user": "u", "item": "old"})
    service.delete("/v1/items/old")
    service.post("/v1/interactions", json={"user": "u", "item": "old"})
    refused = service.get("/v1/items/old")
    assert refused.status_code == 404
    assert refused.json()["error"]["message"] == "the item was deleted; put it to recommend it again"
    service.put("/v1/items/old", json={})
    assert service.get("/v1/items/old").json()["events"] == 2


def test_titles_are_found_without_their_accents(service: Opened) -> None:
    service.post("/v1/interactions", json={"user": "u", "item": "film"})
    service.put("/v1/items/film", json={"title": "Le fabuleux destin d'Amélie Poulain"})
    for typed in ("amelie", "Amélie", "AME"):
        assert [item["id"] for item in service.get("/v1/items", params={"prefix": typed}).json()["items"]] == ["film"]
    service.delete("/v1/items/film")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (
            "/v1/users/u/recommendations?limit=5",
            "'limit'; this path accepts all_tags, candidates, exclude, exclude_seen, explore, k, no_tags, offset, "
            "per_tag, tags, why",
        ),
        ("/v1/users/u/recommendations?exclude-seen=true", "unknown parameter 'exclude-seen'"),
        ("/v1/items/i/similar?n=3", "unknown parameter 'n'; this path accepts k"),
        ("/v1/users?prefixx=a", "unknown parameter 'prefixx'"),
    ],
)
def test_a_misspelt_parameter_is_not_passed_over(service: Opened, path: str, says: str) -> None:
    service.post("/v1/interactions", json={"user": "u", "item": "i"})
    refused = service.get(path)
    assert refused.status_code == 422
    assert says in refused.json()["error"]["message"]
