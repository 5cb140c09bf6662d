"""Health: the tiles show the service's own numbers and follow them."""

from __future__ import annotations

import httpx
from playwright.sync_api import Locator, Page, expect


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
