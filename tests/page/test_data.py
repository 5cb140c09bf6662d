"""Data: files are imported by choosing or dropping them, and rejected rows are named with reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from .conftest import serving

DROP = """([name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name, { lastModified: 1 }));
    const zone = document.getElementById("data-drop");
    zone.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def service(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service of its own: these tests add thousands of events, and others count theirs."""
    with serving(run, tmp_path_factory.mktemp("data") / "store.sqlite") as (url, _):
        yield url


def imported(page: Page, name: str, content: str | bytes, kind: str = "events") -> str:
    """Choose a file; what the page says when it is done."""
    page.goto("/#/data")
    page.get_by_label(kind, exact=True).check()
    raw = content.encode() if isinstance(content, str) else content
    page.locator("#data-file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": raw})
    expect(page.locator("#data-told strong")).to_have_text("Done.")
    return page.locator("#data-told").inner_text()


def rejected(page: Page) -> list[tuple[str, str]]:
    cells = page.locator("#data-rejected tbody tr").all()
    return [(row.locator("td").first.inner_text(), row.locator("td").last.inner_text()) for row in cells]


def test_events_from_csv_with_all_that_may_be_wrong(page: Page, api: httpx.Client) -> None:
    text = (
        "\ufeffuser_id;product_id;ts;note\r\n"
        'csv-ada;"tea; ""green""";1790000000;x\r\n'
        "\r\n"
        "csv-ada;;1790000001;\r\n"
        "csv-ada;milk;soon;\r\n"
        "csv-ada;milk;;\r\n"
        "a;b;1;x;too many\r\n"
        'csv-ada;"not closed;1790000002;'
    )
    told = imported(page, "events.csv", text)
    assert "6 rows read, 2 accepted" in told
    assert "ignored columns: note" in told
    assert rejected(page) == [
        ("2", "item: give a non-empty string or a whole number"),
        ("3", "timestamp: not ISO 8601; write it as 2026-01-31T12:00:00Z"),
        ("5", "more fields than the first line; quote fields that hold “;”"),
        ("6", "a quote is not closed"),
    ]
    history = api.get("/v1/users/csv-ada").json()["history"]
    assert {entry["id"] for entry in history} == {'tea; "green"', "milk"}


def test_items_from_json_lines_by_dropping(page: Page, api: httpx.Client) -> None:
    lines = [
        json.dumps({"id": "dropped", "title": "Dropped", "tags": ["x"]}),
        "{broken",
        json.dumps({"title": "no id"}),
    ]
    page.goto("/#/data")
    page.get_by_label("items", exact=True).check()
    page.evaluate(DROP, ["items.jsonl", "\n".join(lines)])
    expect(page.locator("#data-told")).to_contain_text("3 rows read, 1 accepted, 2 rejected")
    assert rejected(page) == [("2", "not a JSON object"), ("3", "id: missing; name it id, or item_id")]
    assert api.get("/v1/items/dropped").json()["title"] == "Dropped"


def test_a_large_file_is_sent_in_parts_and_counts_once(page: Page, api: httpx.Client) -> None:
    rows = "\n".join(f"large-{n % 50},song-{n % 90},{1_790_000_100 + n}" for n in range(5_000))
    posts = list[str]()
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    before = api.get("/v1/stats").json()["events"]
    page.goto("/#/data")
    for _ in range(2):
        page.reload()
        page.evaluate(DROP, ["large.csv", f"user,item,timestamp\n{rows}\n"])
        expect(page.locator("#data-told")).to_contain_text("Done. 5,000 rows read, 5,000 accepted")
    assert len(posts) == 6
    assert api.get("/v1/stats").json()["events"] == before + 5_000


def test_a_list_of_json_and_a_post_without_a_good_row(page: Page, api: httpx.Client) -> None:
    told = imported(page, "items.json", json.dumps([{"id": "listed", "title": "Listed"}, 7]), "items")
    assert "2 rows read, 1 accepted, 1 rejected" in told
    assert api.get("/v1/items/listed").json()["title"] == "Listed"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"PAR1....", "A browser cannot read Parquet"),
        (b"user,item\n\xff\xfe,x\n", "not UTF-8"),
        (b"[{", "not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_said(page: Page, content: bytes, says: str, tmp_path: Path) -> None:
    page.goto("/#/data")
    (tmp_path / "file.txt").write_bytes(content)
    page.locator("#data-file").set_input_files(tmp_path / "file.txt")
    expect(page.get_by_role("alert")).to_contain_text(says)
    expect(page.locator("#data-told")).to_contain_text("Not all rows were sent")
    expect(page.locator("#data-file")).to_be_enabled()
