"""The cold-start lab: an item rises event by event."""

from __future__ import annotations

import httpx
from playwright.sync_api import Page, Route, expect


def found(api: httpx.Client, title: str) -> dict[str, object]:
    items = api.get("/v1/items", params={"prefix": title}).json()["items"]
    assert len(items) == 1
    item: dict[str, object] = api.get(f"/v1/items/{items[0]['id']}").json()
    return item


def test_similar_users_interact_with_a_new_item_and_it_gets_ranks(page: Page, api: httpx.Client) -> None:
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    page.locator("#lab-name").fill("Novelty")
    page.locator("#lab-takers").fill("3")
    page.locator("#lab-watchers").fill("4")
    page.locator("#lab-step").click()
    rows = page.locator("#lab-table tbody tr")
    expect(rows).to_have_count(2)  # before, and after the first event
    page.locator("#lab-run").click()
    expect(rows).to_have_count(4)
    expect(page.locator("#lab-run")).to_have_text("Run")
    expect(page.locator("#lab-told")).to_contain_text("After 3 events")
    assert page.locator("#lab-chart path.line").count() == 2
    item = found(api, "Novelty")
    assert item["events"] == 3
    ranks = [int(cell.replace(",", "")) for cell in page.locator("#lab-table td:nth-child(5)").all_text_contents()]
    assert ranks == sorted(ranks)  # newest first: the rank by decayed popularity only improves
    assert ranks[0] < ranks[-1]

    page.locator("#lab-clear").click()
    expect(page.locator("#lab-told")).to_contain_text("No longer recommended: Novelty")
    assert found(api, "Novelty")["available"] is False


def test_users_close_to_a_user(page: Page, api: httpx.Client) -> None:
    page.goto("/#/lab")
    page.get_by_label("a user").check()
    page.locator("#lab-name").fill("Curiosity")
    page.locator("#lab-step").click()
    expect(page.locator("#notice")).to_contain_text("Choose an item or a user first")
    page.locator("#lab-anchor input").fill("9")
    page.locator("#lab-anchor [role=option]").first.click()
    page.locator("#lab-step").click()
    expect(page.locator("#lab-told")).to_contain_text("After 1 event:")
    expect(page.locator("#notice")).to_be_hidden()
    assert found(api, "Curiosity")["events"] == 1


def test_a_late_suggestion_does_not_replace_the_choice(page: Page) -> None:
    waiting: list[Route] = []
    page.route("**/v1/users?*sample=true*", lambda route: waiting.append(route))
    page.goto("/#/lab")
    page.get_by_label("a user").check()
    with page.expect_response("**/recommendations?*"):
        waiting.pop().continue_()
    page.locator("#lab-step").click()
    expect(page.locator("#notice")).to_contain_text("Choose an item or a user first")
    expect(page.locator("#lab-anchor input")).to_have_value("")


def test_items_can_be_made_unavailable_after_a_field_changed(page: Page, api: httpx.Client) -> None:
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    for name in ("Gadget", "Widget"):
        page.locator("#lab-name").fill(name)
        page.locator("#lab-takers").fill("2" if name == "Gadget" else "3")  # clears the previous trial
        page.locator("#lab-step").click()
        expect(page.locator("#lab-told")).to_contain_text("After 1 event:")
    page.locator("#lab-watchers").fill("3")
    page.locator("#lab-watchers").blur()
    page.locator("#lab-clear").click()
    expect(page.locator("#lab-told")).to_contain_text("No longer recommended: Gadget, Widget")
    assert [found(api, name)["available"] for name in ("Gadget", "Widget")] == [False, False]


def test_a_second_click_waits_for_the_first(page: Page, api: httpx.Client) -> None:
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    page.locator("#lab-name").fill("Doodad")
    page.evaluate("for (const _ of [1, 2]) document.querySelector('#lab-step').click()")
    expect(page.locator("#lab-told")).to_contain_text("After 1 event:")
    expect(page.locator("#lab-step")).to_be_enabled()
    assert found(api, "Doodad")["events"] == 1


def begin(page: Page, name: str) -> None:
    page.goto("/#/lab")
    expect(page.locator("#lab-anchor input")).not_to_have_value("")
    page.locator("#lab-name").fill(name)


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
    expect(page.locator("#lab-told")).to_contain_text("After 1 event:")
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
    page.locator("#lab-anchor input").fill("Song")  # typed, not chosen
    page.keyboard.press("Escape")  # the list would cover the button
    page.locator("#lab-step").click()
    expect(page.locator("#notice")).to_contain_text("Choose an item or a user first")
    assert api.get("/v1/items", params={"prefix": "Nonsense"}).json()["items"] == []
