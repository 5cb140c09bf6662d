"""Rules of lists over HTTP: parameters, bodies, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from felrec.answers.types import FoundItems, Item, Recommendations
from http_service.running import LOG, Opened, checked

USER = str(LOG.user_ids.ids(LOG.users[:1])[0])


def ids(service: Opened, **query: Any) -> list[str]:
    answer = service.get(f"/v1/users/{USER}/recommendations", params={"exclude_seen": "false", **query})
    assert answer.status_code == 200, answer.text
    return [item.id for item in checked(Recommendations, answer.json()).items]


def session(service: Opened, **body: Any) -> list[str]:
    answer = service.post("/v1/recommendations", json={"items": [], **body})
    assert answer.status_code == 200, answer.text
    return [item.id for item in checked(Recommendations, answer.json()).items]


def put(service: Opened, item: str, **attributes: Any) -> Item:
    answer = service.put(f"/v1/items/{item}", json=attributes)
    assert answer.status_code == 200, answer.text
    return checked(Item, answer.json())


def test_pages_and_excluded_items(service: Opened) -> None:
    best = ids(service, k=9)
    assert ids(service, k=3, offset=3) == best[3:6]
    assert ids(service, k=3, exclude=",".join(best[:3])) == best[3:6]
    assert ids(service, k=2, exclude=[best[0], best[2]]) == [best[1], best[3]]
    alone = session(service, k=6)
    assert session(service, k=2, offset=2, exclude=[alone[0]]) == alone[3:5]


def test_tags_groups_and_times(service: Opened) -> None:
    best = ids(service, k=6)
    for item, tags in zip(best, (["a"], ["a", "b"], ["b"]), strict=False):
        put(service, item, tags=tags)
    assert ids(service, all_tags="a,b") == [best[1]]
    assert ids(service, tags="a,b", no_tags="b") == [best[0]]
    assert ids(service, tags="a,b", per_tag=1) == [best[0], best[2]]
    assert set(session(service, all_tags=["a"])) == set(best[:2])
    put(service, best[1], variant_of=best[0])
    assert best[1] not in ids(service, k=3)
    gone = put(service, best[0], expires="2020-01-01T00:00:00Z")
    assert gone.expires == datetime(2020, 1, 1, tzinfo=UTC).timestamp()
    later = put(service, best[2], available_from=9e9)
    assert later.available_from == 9e9
    assert {best[0], best[2]}.isdisjoint(ids(service, k=100))
    assert "expires" not in service.get(f"/v1/items/{best[2]}").json()


def test_lists_for_everybody(service: Opened) -> None:
    answer = service.get("/v1/items", params={"sort": "popular", "limit": 5}).json()
    popular = checked(FoundItems, answer)
    assert popular.sort == "popular"
    assert [item.events for item in popular.items] == sorted((item.events for item in popular.items), reverse=True)
    second = checked(FoundItems, service.get("/v1/items?sort=popular&limit=2&offset=2").json())
    assert second.items == popular.items[2:4]
    for sort in ("trending", "newest"):
        assert len(checked(FoundItems, service.get(f"/v1/items?sort={sort}&limit=3").json()).items) == 3
    put(service, popular.items[1].id, title="Quince")
    found = checked(FoundItems, service.get("/v1/items?sort=popular&prefix=quin").json())
    assert [item.id for item in found.items] == [popular.items[1].id]
    assert checked(FoundItems, service.get("/v1/items?offset=1").json()).sort == "trending"


def test_items_without_events_are_marked(service: Opened) -> None:
    put(service, "never-taken", title="New")
    answer = service.get(f"/v1/users/{USER}/recommendations", params={"k": 5, "explore": 1}).json()["items"]
    assert (answer[0]["id"], answer[0]["explored"], answer[0]["title"]) == ("never-taken", True, "New")
    assert all("explored" not in item for item in answer[1:])
    assert "never-taken" in session(service, explore=1.0)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/v1/users/1/recommendations?per_tag=0", "per_tag"),
        ("/v1/users/1/recommendations?explore=2", "explore"),
        ("/v1/users/1/recommendations?offset=-1", "offset"),
        ("/v1/users/1/recommendations?offset=1001", "offset"),
        ("/v1/items?sort=best", "sort"),
        ("/v1/items?sort=popular&hours=0", "hours"),
    ],
)
def test_what_makes_no_sense_is_refused(service: Opened, path: str, word: str) -> None:
    answer = service.get(path)
    assert answer.status_code == 422, answer.text
    assert word in answer.json()["error"]["message"]
