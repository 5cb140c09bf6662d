"""The frame around the views: themes, phone width, keyboard, security policy, API keys and error messages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import serving, watched

VIEWS = ("live", "lab", "map", "trending", "data", "health")


def background(page: Page) -> int:
    """The sum of red, green and blue of the page background."""
    colour = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    return sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(",")))


def test_dark_and_light(browser: Browser, service: str) -> None:
    with watched(browser, service, color_scheme="dark") as page:
        for view in VIEWS:
            page.goto(f"/#/{view}")
            expect(page.locator(f"#view-{view} h1")).to_be_visible()
            assert background(page) < 200
        page.get_by_role("button", name="Switch between light and dark").click()
        assert background(page) > 600
        page.reload()
        assert background(page) > 600  # remembered


def test_views_by_keyboard(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    for name in ("felrec", "Live", "Cold-start lab"):
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Cold-start lab")).to_be_visible()
    expect(page).to_have_title("Cold-start lab · felrec")


def test_the_navigation_can_be_skipped(page: Page) -> None:
    page.goto("/#/health")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page).to_have_url(re.compile("#/health$"))


@pytest.mark.parametrize("width", [360, 600, 768, 880, 1024])
def test_all_views_can_be_reached_at_every_width(browser: Browser, service: str, width: int) -> None:
    with watched(browser, service, viewport={"width": width, "height": 800}) as page:
        page.goto("/#/health")
        expect(page.locator("#status-text")).to_contain_text("events")
        assert page.locator("nav").evaluate("nav => nav.scrollWidth <= nav.clientWidth")


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_cut_off_on_a_phone(browser: Browser, service: str, view: str) -> None:
    with watched(browser, service, viewport={"width": 360, "height": 740}) as page:
        page.goto(f"/#/{view}")
        expect(page.locator(f"#view-{view} h1")).to_be_visible()
        expect(page.locator("#status-text")).to_contain_text("events")
        assert page.locator("html").evaluate("html => html.scrollWidth") <= 360


def test_the_policy_is_strict_and_all_files_are_there(service: str) -> None:
    with httpx.Client(base_url=service, trust_env=False) as api:
        policy = api.get("/").headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        for file in ("style.css", "main.js", "theme.js", "icon.svg"):
            assert api.get(f"/static/{file}").status_code == 200


def test_a_stopped_service_is_reported(browser: Browser, run: Path, tmp_path: Path) -> None:
    context = browser.new_context()
    with serving(run, tmp_path / "store.sqlite") as (url, process):
        page = context.new_page()
        page.goto(f"{url}/#/live/5")
        expect(page.locator("#recommended li")).to_have_count(10)
        process.terminate()
        process.wait(60)
        page.locator("#recommended button").first.click()
        expect(page.get_by_role("alert")).to_contain_text("Is `felrec serve` still running?")
        page.get_by_role("button", name="Dismiss").click()
        expect(page.get_by_role("alert")).to_be_hidden()
    context.close()


def test_an_outage_shows_no_other_users_data_and_the_page_recovers(browser: Browser, service: str) -> None:
    context = browser.new_context(base_url=service)
    page = context.new_page()
    page.goto("/#/live/5")
    expect(page.locator("#recommended li")).to_have_count(10)
    page.route("**/v1/**", lambda route: route.abort())
    page.locator("#live-stranger").click()
    expect(page.locator("#recommended")).to_have_text("No response.")
    expect(page.locator("#history")).to_have_text("No response.")
    expect(page.locator("#status-text")).to_have_text("no response", timeout=10_000)
    page.unroute("**/v1/**")
    expect(page.locator("#recommended li")).to_have_count(10, timeout=10_000)
    expect(page.get_by_role("alert")).to_be_hidden()
    page.get_by_role("link", name="Health").click()
    expect(page.locator(".tile .value").first).to_have_text("ready")
    page.route("**/v1/**", lambda route: route.abort())
    expect(page.locator(".tile .value").first).to_have_text("no response")
    context.close()


def test_a_key_is_asked_for_and_used(browser: Browser, run: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    code = "from felrec.cli import main; main()"
    add = [sys.executable, "-c", code, "keys", "add", "--keys", str(keys), "--scope", "read"]
    made = subprocess.run(add, text=True, capture_output=True, check=True)
    key = made.stdout.split()[0]
    context = browser.new_context()
    with serving(run, tmp_path / "store.sqlite", "--keys", keys) as (url, _):
        page = context.new_page()
        page.goto(f"{url}/#/live/5")
        expect(page.get_by_role("dialog")).to_contain_text("an API key is required")
        page.locator("#key").fill("schlüssel€")  # keys are ASCII
        page.keyboard.press("Enter")
        expect(page.locator("#key:invalid")).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#status-text")).to_have_text("key required", timeout=10_000)
        page.get_by_role("button", name="Enter a key").click()
        page.locator("#key").fill("another")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("unknown API key")
        page.locator("#key").fill(key)
        page.keyboard.press("Enter")
        expect(page.locator("#recommended li")).to_have_count(10)
        page.locator("#recommended button").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("this API key cannot write")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#notice")).to_contain_text("this API key cannot write")
    context.close()
