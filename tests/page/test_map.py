"""The map: drawn, coloured by the match, and usable by mouse and keyboard."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

import needs

COLOURS = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
    return seen.size;
}"""

RED = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const places = [];
    for (let at = 0; at < data.length; at += 4) if (data[at] > 180 && data[at + 1] < 60) places.push(at / 4);
    return places;
}"""


@pytest.fixture
def drawn(page: Page) -> Page:
    needs.package("openTSNE")
    page.goto("/#/map")
    expect(page.locator("#map-best-items li")).to_have_count(8, timeout=60_000)
    return page


def test_users_and_items_are_drawn_in_many_colours(drawn: Page) -> None:
    for canvas in ("#map-users", "#map-items"):
        assert drawn.locator(canvas).evaluate(COLOURS) > 20
    expect(drawn.locator("#map-told")).to_contain_text("Items are coloured by match with this user")


def test_a_click_selects(drawn: Page) -> None:
    third = drawn.locator("#map-best-items button").nth(2)
    named = third.text_content() or ""
    third.click()
    title = drawn.locator("#map-item input").input_value()
    assert title
    assert title in named
    expect(drawn.locator("#map-told")).to_contain_text(title)
    expect(drawn.locator("#map-told")).to_contain_text("Users are coloured by match with this item")
    before = drawn.locator("#map-told").text_content()
    # Scan the canvas until the tooltip appears: there is a point there.
    box = drawn.locator("#map-users").bounding_box()
    assert box is not None
    tip = drawn.locator("#map-users + .tip")
    for step in range(400):
        drawn.mouse.move(box["x"] + box["width"] * (step % 20 + 0.5) / 20, box["y"] + box["height"] * (step // 20) / 20)
        if tip.is_visible():
            break
    expect(tip).to_be_visible()
    drawn.mouse.down()
    drawn.mouse.up()
    expect(drawn.locator("#map-told")).not_to_have_text(before or "")
    expect(drawn.locator("#map-item input")).to_have_value("")


def test_arrow_keys_go_from_point_to_point(drawn: Page) -> None:
    drawn.locator("#map-items").focus()
    drawn.keyboard.press("ArrowRight")
    tip = drawn.locator("#map-items + .tip")
    expect(tip).to_contain_text("Song ")
    for key in ("ArrowDown", "ArrowLeft", "ArrowUp", "+"):
        drawn.keyboard.press(key)
    drawn.keyboard.press("ArrowRight")
    expect(tip).to_be_visible()
    drawn.keyboard.press("Enter")
    expect(drawn.locator("#map-item input")).to_have_value(tip_title(tip.text_content()))
    drawn.keyboard.press("0")


def tip_title(text: str | None) -> str:
    return " ".join((text or "").split()[:4])


def test_a_user_newer_than_the_map_is_drawn_near_similar_users(drawn: Page, api: httpx.Client) -> None:
    api.post("/v1/interactions", json={"user": "late comer", "item": "7"}).raise_for_status()
    before = drawn.locator("#map-users").evaluate(RED)
    drawn.locator("#map-user input").fill("late comer")
    drawn.keyboard.press("Enter")
    expect(drawn.locator("#map-told")).to_contain_text("late comer")
    assert drawn.locator("#map-users").evaluate(RED) not in (before, [])


def test_the_address_names_what_is_selected(drawn: Page) -> None:
    expect(drawn).to_have_url(re.compile("#/map/users/"))
    first = drawn.url
    drawn.goto("/#/map/items/7")
    expect(drawn.locator("#map-item input")).to_have_value(re.compile("^Song 7 "))
    drawn.locator("#map-best-users button").first.click()
    expect(drawn).to_have_url(re.compile("#/map/users/"))
    drawn.go_back()
    expect(drawn.locator("#map-told")).to_contain_text("Song 7 ")
    drawn.go_back()
    expect(drawn).to_have_url(first)
    expect(drawn.locator("#map-user input")).to_have_value(first.rpartition("/")[2])


def test_an_unknown_id_in_the_address_is_reported(drawn: Page, browser: Browser, service: str) -> None:
    context = browser.new_context(base_url=service)  # not `watched`: browsers log every 404
    page = context.new_page()
    page.goto("/#/map/items/nothing at all")
    expect(page.locator("#map-best-items li")).to_have_count(8)
    expect(page.locator("#notice")).to_contain_text("no such item")  # still shown after the map has loaded
    page.goto("/#/map/items/7")
    expect(page.locator("#notice")).to_be_hidden()
    expect(page.locator("#map-told")).to_contain_text("Song 7 ")
    context.close()


def test_buttons_zoom(drawn: Page) -> None:
    picture = "canvas => canvas.toDataURL()"
    canvas = drawn.locator("#map-items")
    drawn.mouse.move(0, 0)
    before = canvas.evaluate(picture)
    drawn.get_by_role("button", name="Zoom in, map of items").click()
    assert canvas.evaluate(picture) != before
    drawn.get_by_role("button", name="Zoom out, map of items").click()
    assert canvas.evaluate(picture) == before
