"""A real `felrec serve` over a small store with titles, and a real browser whose errors fail the test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import needs
from felrec import runs
from felrec.data.synthetic import synthetic_log

FLAGS = (  # tests may run as root, and nothing outside may be requested
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
TINY = {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "history_length": 8, "queue_size": 64}


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "run"
    log = synthetic_log(1_500, n_users=60, n_items=80, seed=3).log
    runs.train(log, "felrec-q", out, {**TINY, "batch_size": 64, "epochs": 1})
    return out


@contextmanager
def serving(run: Path, store: Path, *options: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a service in its own process; yields its address and process."""
    code = "from felrec.cli import main; main()"
    arguments = ("serve", run, "--store", store, "--port", 0, *options)
    log = store.with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    assert process.stdout is not None
    watchdog = threading.Timer(1_200, process.kill)  # longer than all tests: one service lives for the whole session
    watchdog.start()
    try:
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None, log.read_text()
        yield address[0], process
    finally:
        watchdog.cancel()
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="session")
def service(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(run, tmp_path_factory.mktemp("page") / "store.sqlite") as (url, _):
        with client(url) as api:
            for number in range(80):
                colour = ("red", "blue")[number % 2]
                body = {"title": f"Song {number} in {colour}", "tags": [colour]}
                api.put(f"/v1/items/{number}", json=body).raise_for_status()
        yield url


def client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, trust_env=False, timeout=30)


@pytest.fixture
def api(service: str) -> Iterator[httpx.Client]:
    with client(service) as opened:
        yield opened


@pytest.fixture(scope="module")  # an open browser holds the thread's event loop, which other tests need
def browser() -> Iterator[Browser]:
    chromium = needs.program("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield opened
        opened.close()


@contextmanager
def watched(browser: Browser, url: str, **options: object) -> Iterator[Page]:
    """A page of the service. Fails if the page logs an error or sends a request to any other host."""
    context = browser.new_context(base_url=url, reduced_motion="reduce", **options)  # type: ignore[arg-type]
    context.set_default_timeout(20_000)
    page, faults, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        yield page
        assert faults == []
        assert asked
        assert [address for address in asked if not address.startswith(f"{url}/")] == []
    finally:
        context.close()


@pytest.fixture
def page(browser: Browser, service: str) -> Iterator[Page]:
    with watched(browser, service, viewport={"width": 1280, "height": 800}) as opened:
        yield opened
