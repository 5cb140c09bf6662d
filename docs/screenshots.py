"""Make the screenshots of docs/page.md from the demo: `python docs/screenshots.py [NAME …]` (needs chromium)."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import httpx
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).with_name("images")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
SIZE = {"width": 1280, "height": 860}
BUSY = 30  # seconds of traffic before the screenshot of the health view


def live(page: Page) -> None:
    """Record an event with the fourth recommendation."""
    page.locator("#recommended li").nth(9).wait_for()
    page.locator("#recommended button").nth(3).click()
    page.locator("#click-to-list").wait_for()
    page.mouse.move(0, 0)
    page.wait_for_timeout(600)


def lab(page: Page) -> None:
    """Run the experiment to its end."""
    page.wait_for_timeout(1_000)
    page.locator("#lab-run").click()
    page.get_by_text("After 12 events").wait_for(timeout=120_000)
    page.locator("#lab-run", has_text="Run").wait_for()


def map_(page: Page) -> None:
    """Wait for the map and select an item."""
    page.locator("#map-best-items li").first.wait_for(timeout=120_000)
    page.locator("#map-best-items button").first.click()
    page.get_by_text("Users are coloured by match with this item").wait_for()
    page.mouse.move(0, 0)
    page.wait_for_timeout(600)


def trending(page: Page) -> None:
    """Wait for the list."""
    page.locator("#trending-list li").nth(19).wait_for()


def data(page: Page) -> None:
    """Import a few events, of which some are not valid."""
    rows = ["user;item;timestamp;price", *(f"visitor-{n % 9};tea;{1_790_000_000 + n};2" for n in range(40))]
    rows += ["visitor-1;;1790000100;2", "visitor-2;milk;yesterday;1", "visitor-3;milk;1790000200;1;extra"]
    file = {"name": "events.csv", "mimeType": "text/csv", "buffer": "\n".join(rows).encode()}
    page.locator("#data-file").set_input_files(file)  # type: ignore[arg-type]
    page.locator("#data-told strong", has_text="Done.").wait_for()


def health(page: Page) -> None:
    """Wait for half a minute of traffic."""
    page.wait_for_timeout(BUSY * 1_000)


def traffic(url: str, stop: threading.Event) -> None:
    """Users request recommendations and interact with one of them, or now and then with a new item."""
    rng = random.Random(0)
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as api:
        users = [user["id"] for user in api.get("/v1/users", params={"sample": True, "limit": 100}).json()["users"]]
        while not stop.wait(rng.expovariate(12)):
            user = rng.choice(users)
            found = api.get(f"/v1/users/{user}/recommendations").json()
            place = min(9, int(rng.expovariate(0.4)))
            known = rng.random() < 0.9
            item = found["items"][place]["id"] if known else f"new-{rng.randrange(10**6)}"
            reports = [{"ticket": found["ticket"], "kind": "impression"}]
            reports += [{"ticket": found["ticket"], "kind": "click", "position": place}] * known
            api.post("/v1/feedback", json=reports).raise_for_status()
            api.post("/v1/interactions", json={"user": user, "item": item}).raise_for_status()


Picture = tuple[str, Callable[[Page], None], Literal["light", "dark"], str]  # view, what to do there, theme, file
GROCERIES: list[Picture] = [
    ("live", live, "light", "live"),
    ("lab", lab, "light", "lab"),
    ("map", map_, "light", "map"),
    ("map", map_, "dark", "map-dark"),
    ("trending", trending, "light", "trending"),
    ("data", data, "light", "data"),
    ("health", health, "light", "health"),
]
SONGS: list[Picture] = [("lab", lab, "light", "lab-songs")]


def take_all(url: str, pictures: list[Picture]) -> None:
    """Take screenshots of a running demo."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for view, act, scheme, name in pictures:
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
            stop = threading.Event()
            if view == "health":
                threading.Thread(target=traffic, args=(url, stop), daemon=True).start()
            page.goto(f"{url}/#/{view}")
            act(page)
            page.evaluate("scrollTo(0, 0)")  # else the sticky header covers part of the screenshot
            page.screenshot(path=IMAGES / f"page-{name}.png", full_page=True)
            stop.set()
            page.close()
        browser.close()


def main() -> None:
    """Take the screenshots of both worlds, or those named."""
    IMAGES.mkdir(exist_ok=True)
    for world, pictures in (("groceries", GROCERIES), ("songs", SONGS)):
        wanted = [picture for picture in pictures if not sys.argv[1:] or picture[-1] in sys.argv[1:]]
        if wanted:
            show(world, wanted)


def show(world: str, pictures: list[Picture]) -> None:
    """Start the demo of a world, take screenshots, stop it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from felrec.cli import main; main()", "demo", "--out", f"{folder}/demo"]
        command += ["--world", world]
        with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as demo:
            assert demo.stdout is not None
            address = re.search(r"http://\S+", demo.stdout.readline())
            assert address is not None
            try:
                take_all(address[0], pictures)
            finally:
                demo.terminate()


if __name__ == "__main__":
    main()
