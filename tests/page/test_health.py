"""Health: the tiles show the service's own numbers and follow them."""

from __future__ import annotations

from pathlib import Path

import httpx
from playwright.sync_api import Browser, Locator, Page, expect

from .conftest import client, serving, watched

NAMES_ABOVE_ENDS = """() => {
    const all = (one) => [...document.querySelectorAll(`#clicks-chart ${one}`)];
    const [names, ends] = [all("text.name"), all("circle.end")];
    const lowest = Math.max(...names.map((name) => Number(name.getAttribute("y"))));
    return ends.length === 2 && ends.every((end) => lowest < Number(end.getAttribute("cy")));
}"""


def tile(page: Page, name: str) -> Locator:
    return page.locator(".tile", has=page.get_by_role("heading", name=name, exact=True)).locator(".value")


def test_numbers_follow_the_service(page: Page, api: httpx.Client) -> None:
    api.get("/v1/users/3/recommendations").raise_for_status()
    page.goto("/#/health")
    stats = api.get("/v1/stats").json()
    expect(tile(page, "State")).to_have_text("ready")
    expect(tile(page, "Items")).to_have_text(f"{stats['items']:,}")
    expect(tile(page, "Users")).to_have_text(f"{stats['users']:,}")
    expect(tile(page, "Cold items")).to_have_text(f"{stats['cold_items']:,}")
    new = [{"user": "3", "item": f"fresh {number}"} for number in range(20)]
    api.post("/v1/interactions", json=new).raise_for_status()
    expect(tile(page, "Items")).to_have_text(f"{stats['items'] + 20:,}")
    expect(tile(page, "Cold items")).to_have_text(f"{stats['cold_items'] + 20:,}")
    expect(tile(page, "Events per second")).not_to_have_text("0")
    assert page.locator("#latency-chart path.line").count() == 2
    assert page.locator("#catalogue-chart path.line").count() == 2


def test_popularity_bias(page: Page, api: httpx.Client) -> None:
    api.get("/v1/users/5/recommendations").raise_for_status()
    page.goto("/#/health")
    expect(page.locator("#bias-over")).to_contain_text("request")
    expect(page.locator("#bias-chart rect")).to_have_count(10)
    expect(page.locator("#bias")).to_contain_text("Coverage")


def test_clicks_and_the_test_against_trending(browser: Browser, run: Path, tmp_path: Path) -> None:
    with serving(run, tmp_path / "store.sqlite", "--ab-trending", 0.5) as (url, _), watched(browser, url) as page:
        page.goto("/#/health")
        expect(page.locator("#clicks")).to_contain_text("No reports yet")
        expect(page.locator("#clicks-chart")).to_be_hidden()
        panel, words = (page.locator(one).bounding_box() for one in (".bias:has(#clicks)", "#clicks"))
        assert panel is not None
        assert words is not None
        assert words["x"] == panel["x"]  # not behind the room of a chart that is not there
        with client(url) as api:
            for user in range(60):
                found = api.get(f"/v1/users/{user}/recommendations?k=5").json()
                clicked = [0] if found["arm"] == "model" else []
                rows = [{"ticket": found["ticket"], "kind": "impression"}]
                rows += [{"ticket": found["ticket"], "kind": "click", "position": place} for place in clicked]
                api.post("/v1/feedback", json=rows).raise_for_status()
        expect(page.locator("#clicks")).to_contain_text("+100.0 percentage points")
        expect(page.locator("#clicks")).to_contain_text("the model's lists are clicked more often")
        expect(page.locator("#clicks-chart path.line")).to_have_count(2)
        expect(page.locator("#clicks-chart polygon.band")).to_have_count(2)
        expect(page.locator("#clicks-over")).to_contain_text("test since")
        page.set_viewport_size({"width": 390, "height": 800})  # a phone: names are above the lines, and off them
        expect(page.locator("#clicks-chart text.name[text-anchor=end]")).to_have_count(2)
        assert page.evaluate(NAMES_ABOVE_ENDS)
