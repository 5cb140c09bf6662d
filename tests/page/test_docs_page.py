"""The page of the API: all of the OpenAPI document, offline, under the policy of the other pages."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from felrec.service.http.keys import KeyFile

from .conftest import client, serving, watched


def test_every_path_is_shown_with_its_parameters_and_answers(page: Page, api: httpx.Client) -> None:
    document = api.get("/openapi.json").json()
    page.goto("/docs")
    operations = page.locator("#operations details")
    expect(operations).to_have_count(sum(len(methods) for methods in document["paths"].values()))
    expect(page.locator("#schemas details")).to_have_count(len(document["components"]["schemas"]))
    recommend = operations.filter(has_text=re.compile(r"^GET /v1/users/\{id\}/recommendations"))
    expect(recommend.get_by_text("number of entries")).to_be_hidden()
    recommend.locator("summary").click()
    row = recommend.get_by_role("row").filter(has_text="number of entries")
    expect(row).to_contain_text("k query")
    expect(row).to_contain_text("integer")
    expect(row).to_contain_text("from 1, up to 1000, default 10")
    recommend.get_by_role("link", name="Recommendations", exact=True).click()
    fields = page.locator("#Recommendations")
    expect(fields.get_by_text("false for a user without any event")).to_be_visible()
    expect(page).to_have_url(re.compile("#Recommendations$"))
    page.reload()
    expect(fields.get_by_text("false for a user without any event")).to_be_visible()  # an address of its own


def test_it_fits_a_phone_and_the_dark(browser: Browser, service: str) -> None:
    with watched(browser, service, viewport={"width": 360, "height": 700}, color_scheme="dark") as page:
        page.goto("/docs")
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") == "rgb(17, 20, 19)"


def test_what_is_wrong_is_said(browser: Browser, service: str) -> None:
    context = browser.new_context(base_url=service)
    page = context.new_page()
    page.route("**/openapi.json", lambda route: route.fulfill(status=503, body="busy"))
    page.goto("/docs")
    expect(page.get_by_role("alert")).to_have_text(re.compile(r"cannot be shown \(openapi.json: 503\)"))
    context.close()


@pytest.mark.slow
def test_it_is_public_and_has_the_policy_of_a_page(run: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    KeyFile(keys).add(["read"], "")
    with serving(run, tmp_path / "store.sqlite", "--keys", keys) as (url, _), client(url) as api:
        assert api.get("/v1/stats").status_code == 401
        answer = api.get("/docs")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"(src|href)=[\"'](https?:)?//|<script>|<style>| style=", answer.text)
