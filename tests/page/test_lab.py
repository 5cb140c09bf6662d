"""The cold-start lab: an item rises event by event."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from .conftest import client, serving, watched


def found(api: httpx.Client, title: str) -> dict[str, object]:
    items = api.get("/v1/items", params={"prefix": title}).json()["items"]
    assert len(items) == 1
    item: dict[str, object] = api.get(f"/v1/items/{items[0]['id']}").json()
    return item


def type_only(page: Page, text: str) -> None:
    """Type the beginning of an item without choosing one, and close the list, which covers the buttons."""
    with page.expect_response(lambda answer: f"prefix={quote_plus(text)}&" in answer.url):
        page.locator("#lab-anchor input").fill(text)
    options = page.locator("#lab-anchor [role=option]")
    expect(options.first).to_be_visible()
    page.locator("#lab-anchor input").press("Escape")
    expect(options.first).to_be_hidden()


def ranks(page: Page, column: int) -> list[int]:
    """The ranks of a column of the table, newest first."""
    cells = page.locator(f"#lab-table td:nth-child({column})").all_text_contents()
    return [int(cell.split()[0].replace(",", "")) for cell in cells]


def test_neighbours_take_a_new_item_while_traffic_goes_on(page: Page, api: httpx.Client) -> None:
    events = api.get("/v1/stats").json()["events"]
    # Background traffic repeats what users had lately: let it come to every user, those who took the new item too.
    page.add_init_script("let turn = 0; Math.random = () => (turn++ * 0.6180339887) % 1")
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    page.locator("#lab-name").fill("Novelty")
    for field, number in (("takers", 3), ("watchers", 4), ("strangers", 5), ("between", 100)):
        page.locator(f"#lab-{field}").fill(str(number))
    page.locator("#lab-step").click()
    rows = page.locator("#lab-table tbody tr")
    expect(rows).to_have_count(2)  # before, and after the first event
    page.locator("#lab-run").click()
    expect(rows).to_have_count(4)
    expect(page.locator("#lab-run")).to_have_text("Run")
    told = page.locator("#lab-told")
    expect(told).to_contain_text("After 3 events of the item and 300 of others")
    expect(told).to_contain_text("for 4 neighbours who did not take it")
    expect(told).to_contain_text("for 5 strangers")
    assert page.locator("#lab-chart path.line").count() == 3
    item = found(api, "Novelty")
    assert item["events"] == 3
    assert api.get("/v1/stats").json()["events"] == events + 303  # what was entered is what was run
    visitors = api.get("/v1/users", params={"prefix": "lab-visitor-", "limit": 1_000}).json()["users"]
    assert sum(visitor["events"] for visitor in visitors if str(item["id"]) in visitor["id"]) == 300
    by_popularity = ranks(page, 5)
    assert by_popularity[0] < by_popularity[-1]

    page.locator("#lab-clear").click()
    expect(page.locator("#lab-told")).to_contain_text("No longer recommended: Novelty")
    assert found(api, "Novelty")["available"] is False


@pytest.fixture(scope="module")
def camps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with the bundled weights, where thirty cooks and thirty smiths share nothing but bread."""
    chosen = random.Random(0)
    with serving(Path("pretrained"), tmp_path_factory.mktemp("camps") / "store.sqlite") as (url, _), client(url) as api:
        for _ in range(8):
            for number in range(30):
                for camp in ("cook", "smith"):
                    item = chosen.choice(["bread", *(f"{camp}'s {thing}" for thing in range(12))])
                    api.post("/v1/interactions", json={"user": f"{camp} {number}", "item": item}).raise_for_status()
        yield url


def test_a_new_item_rises_for_its_neighbours_and_not_for_strangers(browser: Browser, camps: str) -> None:
    asked: list[str] = []
    with watched(browser, camps) as page:
        page.on("request", lambda request: asked.append(request.url) if "/rank?" in request.url else None)
        begin(page, "Curiosity")
        page.locator("#lab-anchor input").fill("cook's 1")
        page.locator("#lab-anchor [role=option]", has_text="cook's 1").first.click()
        for field, number in (("takers", 8), ("watchers", 6), ("strangers", 7), ("between", 10)):
            page.locator(f"#lab-{field}").fill(str(number))
        page.locator("#lab-run").click()
        expect(page.locator("#lab-told")).to_contain_text("After 8 events of the item and 80 of others")
        near, far = ranks(page, 3), ranks(page, 4)
    shown = parse_qs(urlsplit(asked[-1]).query)["users"]
    assert [user.split()[0] for user in shown] == ["cook"] * 6 + ["smith"] * 7
    assert near[0] < far[0]


def test_too_few_users_are_said(page: Page, api: httpx.Client) -> None:
    begin(page, "Crowd")
    for field in ("takers", "watchers", "strangers"):
        page.locator(f"#lab-{field}").fill("50")
    page.locator("#lab-step").click()
    expect(page.locator("#notice")).to_contain_text("This needs 150 users with a history")
    assert api.get("/v1/items", params={"prefix": "Crowd"}).json()["items"] == []


def test_a_late_suggestion_does_not_replace_the_choice(page: Page) -> None:
    waiting: list[Route] = []
    page.route("**/v1/users?*sample=true*", lambda route: waiting.append(route), times=1)
    page.goto("/#/lab")
    page.locator("#lab-anchor input").fill("Song")
    with page.expect_response("**/rank?*"):
        waiting.pop().continue_()
    page.wait_for_load_state("networkidle")
    expect(page.locator("#lab-anchor input")).to_have_value("Song")
    type_only(page, "Song 1")
    page.locator("#lab-step").click()
    expect(page.locator("#notice")).to_contain_text("Choose an item first")


def test_items_can_be_made_unavailable_after_a_field_changed(page: Page, api: httpx.Client) -> None:
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    for name in ("Gadget", "Widget"):
        page.locator("#lab-name").fill(name)
        page.locator("#lab-takers").fill("2" if name == "Gadget" else "3")  # clears the previous trial
        page.locator("#lab-step").click()
        expect(page.locator("#lab-told")).to_contain_text("After 1 event of the item")
    page.locator("#lab-watchers").fill("3")
    page.locator("#lab-watchers").blur()
    page.locator("#lab-clear").click()
    expect(page.locator("#lab-told")).to_contain_text("No longer recommended: Gadget, Widget")
    assert [found(api, name)["available"] for name in ("Gadget", "Widget")] == [False, False]


def test_a_second_click_waits_for_the_first(page: Page, api: httpx.Client) -> None:
    begin(page, "Doodad")
    page.evaluate("for (const _ of [1, 2]) document.querySelector('#lab-step').click()")
    expect(page.locator("#lab-told")).to_contain_text("After 1 event of the item")
    expect(page.locator("#lab-step")).to_be_enabled()
    assert found(api, "Doodad")["events"] == 1


def begin(page: Page, name: str) -> None:
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    page.locator("#lab-name").fill(name)
    for field in ("watchers", "strangers"):
        page.locator(f"#lab-{field}").fill("5")  # the service of these tests has few users


def test_making_the_item_unavailable_stops_the_run(page: Page, api: httpx.Client) -> None:
    begin(page, "Whatnot")
    page.locator("#lab-run").click()
    expect(page.locator("#lab-table tbody tr").nth(2)).to_be_visible()
    page.locator("#lab-clear").click()
    expect(page.locator("#lab-told")).to_contain_text("No longer recommended: Whatnot")
    expect(page.locator("#lab-run")).to_have_text("Run")
    events = found(api, "Whatnot")["events"]
    page.wait_for_timeout(800)  # three steps of a run
    item = found(api, "Whatnot")  # exactly one: no second trial was started
    assert (item["available"], item["events"]) == (False, events)


def test_items_of_an_earlier_session_can_be_made_unavailable(page: Page, api: httpx.Client) -> None:
    begin(page, "Leftover")
    page.locator("#lab-step").click()
    expect(page.locator("#lab-told")).to_contain_text("After 1 event of the item")
    page.reload()
    page.locator("#lab-clear").click()
    expect(page.locator("#lab-told")).to_contain_text("No longer recommended: Leftover")
    assert found(api, "Leftover")["available"] is False
    expect(page.locator("#lab-clear")).to_be_disabled()


def test_fields_are_validated_before_an_item_is_created(page: Page, api: httpx.Client) -> None:
    begin(page, "Nonsense")
    for wrong in ("", "0", "2.5"):
        page.locator("#lab-takers").fill(wrong)
        for button in ("#lab-step", "#lab-run"):
            page.locator(button).click()
            expect(page.locator("#lab-takers:invalid")).to_be_focused()
    page.locator("#lab-takers").fill("3")
    type_only(page, "Song")
    page.locator("#lab-step").click()
    expect(page.locator("#notice")).to_contain_text("Choose an item first")
    assert api.get("/v1/items", params={"prefix": "Nonsense"}).json()["items"] == []
