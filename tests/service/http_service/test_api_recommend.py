"""Recommendations and what is near, against the shapes of the OpenAPI document."""

from __future__ import annotations

import pytest

from felrec.answers.types import NearItems, NearUsers, Ranks, Recommendations
from http_service.running import LOG, Opened, checked

USER = str(LOG.user_ids.ids(LOG.users[:1])[0])
ITEM = str(LOG.item_ids.ids(LOG.items[:1])[0])


def ask(service: Opened, user: str = USER, **query: object) -> Recommendations:
    answer = service.get(f"/v1/users/{user}/recommendations", params=query)  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    return checked(Recommendations, answer.json())


def test_a_known_and_an_unknown_user(service: Opened) -> None:
    known = ask(service, k=5)
    assert known.known
    assert known.user == USER
    assert len(known.items) == 5
    scores = [item.score for item in known.items]
    assert scores == sorted(scores, reverse=True)
    stranger = ask(service, "nobody has seen me", k=5)
    assert not stranger.known
    assert len(stranger.items) == 5


def test_seen_items_can_be_left_out(service: Opened) -> None:
    had = {past["id"] for past in service.get(f"/v1/users/{USER}?limit=1000").json()["history"]}
    assert had & {item.id for item in ask(service, k=1000, exclude_seen="false").items}
    assert not had & {item.id for item in ask(service, k=1000, exclude_seen="true").items}
    assert ask(service, k=10, exclude_seen="").items


def test_candidates_by_comma_or_several_times(service: Opened) -> None:
    service.post("/v1/interactions", json=[{"user": "u", "item": "a,b"}, {"user": "u", "item": "c"}])
    by_comma = ask(service, candidates=f"{ITEM},c,unheard of", exclude_seen="false")
    assert {item.id for item in by_comma.items} == {ITEM, "c"}
    assert by_comma.ignored == ("unheard of",)
    several = ask(service, candidates=["a,b", "c"])
    assert {item.id for item in several.items} == {"a,b", "c"}
    assert ask(service, candidates="").items == ()


def test_tags_filter_and_unavailable_items_are_never_shown(service: Opened) -> None:
    item = f"/v1/items/{ITEM}"
    service.put(item, json={"title": "First", "tags": ["folk", "old"]})
    found = ask(service, tags="folk", exclude_seen="false")
    assert [(i.id, i.title, i.tags) for i in found.items] == [(ITEM, "First", ("folk", "old"))]
    assert ask(service, tags="jazz").items == ()
    service.put(item, json={"available": False})
    assert ITEM not in {i.id for i in ask(service, k=1000, exclude_seen="false").items}
    service.put(item, json={})
    assert ITEM in {i.id for i in ask(service, k=1000, exclude_seen="false").items}


def test_why_names_items_of_the_history(service: Opened) -> None:
    had = {past["id"] for past in service.get(f"/v1/users/{USER}?limit=1000").json()["history"]}
    known, unknown = ask(service, k=3, why="true").items, ask(service, "stranger", k=3, why="true").items
    assert len(known) == len(unknown) == 3
    for item in known:
        assert item.why
        assert {own.id for reason in item.why for own in reason.items} <= had
    assert all(item.why == () for item in unknown)


def test_an_anonymous_session(service: Opened) -> None:
    before = [service.count(name) for name in ("events", "users", "items")]
    answer = service.post("/v1/recommendations", json={"items": [ITEM, 17, "unheard of"], "k": 4})
    found = checked(Recommendations, answer.json())
    assert len(found.items) == 4
    assert found.ignored == ("unheard of",)
    assert [service.count(name) for name in ("events", "users", "items")] == before


def test_near_items_and_users(service: Opened) -> None:
    similar = checked(NearItems, service.get(f"/v1/items/{ITEM}/similar?k=3").json())
    assert len(similar.items) == 3
    assert ITEM not in {item.id for item in similar.items}
    had = {past["id"] for past in service.get(f"/v1/users/{USER}?limit=1000").json()["history"]}
    audience = checked(NearUsers, service.get(f"/v1/items/{sorted(had)[0]}/audience?k=1000").json())
    assert audience.users
    assert USER not in {user.id for user in audience.users}
    neighbours = checked(NearUsers, service.get(f"/v1/users/{USER}/neighbours?k=3").json())
    assert len(neighbours.users) == 3
    assert USER not in {user.id for user in neighbours.users}


def test_the_rank_of_an_item(service: Opened) -> None:
    answer = service.get(f"/v1/items/{ITEM}/rank", params={"users": f"{USER},stranger"})
    ranks = checked(Ranks, answer.json())
    assert [rank.user for rank in ranks.users] == [USER, "stranger"]
    assert all(rank.rank is not None and 0 <= rank.rank < ranks.catalogue for rank in ranks.users)


@pytest.mark.parametrize("where", ["items/none/similar", "items/none/audience", "users/none/neighbours", "users/none"])
def test_what_is_unknown_is_not_found(service: Opened, where: str) -> None:
    answer = service.get(f"/v1/{where}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("query", ["k=0", "k=1001", "k=x", "exclude_seen=maybe", "candidates=%00", "candidates=%00,a"])
def test_parameters_are_checked(service: Opened, query: str) -> None:
    answer = service.get(f"/v1/users/{USER}/recommendations?{query}")
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["error"]["message"]


def test_a_session_is_checked(service: Opened) -> None:
    for body in ({}, {"items": "a"}, {"items": [""]}, {"items": [], "k": 0}, {"items": [], "what": 1}, [1]):
        assert service.post("/v1/recommendations", json=body).status_code == 422
    answer = service.post("/v1/recommendations", content=b"{", headers={"Content-Type": "application/json"})
    assert answer.json()["error"]["message"] == "the body is not valid JSON"
    assert service.post("/v1/recommendations", content=b'{"items": []}').status_code == 415
