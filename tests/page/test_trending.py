"""Trending: lists for everybody, with filters and pages."""

from __future__ import annotations

import httpx
from playwright.sync_api import Page, expect


def test_lists_are_those_of_the_service(page: Page, api: httpx.Client) -> None:
    api.post("/v1/interactions", json=[{"user": f"fan-{n}", "item": "7"} for n in range(30)]).raise_for_status()
    page.goto("/#/trending")
    rows = page.locator("#trending-list li")
    expect(rows).to_have_count(20)
    expect(rows.first).to_contain_text("Song 7 in blue")
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(40)
    expect(rows.nth(20).get_by_role("link")).to_be_focused()
    for sort in ("popular", "newest"):
        page.get_by_label("Sort by").select_option(sort)
        expect(rows).to_have_count(20)
        first = api.get("/v1/items", params={"sort": sort, "limit": 1}).json()["items"][0]
        expect(rows.first).to_contain_text(first["title"] or first["id"])


def test_filters(page: Page, api: httpx.Client) -> None:
    api.post("/v1/interactions", json={"user": "3", "item": "8"}).raise_for_status()
    page.goto("/#/trending")
    page.locator("#trending-tag").fill("red")
    page.keyboard.press("Enter")
    rows = page.locator("#trending-list li")
    expect(rows.first).to_contain_text("in red")
    expect(page.locator("#trending-list").get_by_text("in blue")).to_have_count(0)
    page.get_by_label("With events in").select_option("1")
    expect(rows.filter(has_text="Song 8 in red")).to_have_count(1)
    page.locator("#trending-tag").fill("no such tag")
    page.keyboard.press("Enter")
    expect(page.locator("#trending-list")).to_contain_text("No item has an event")
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()
