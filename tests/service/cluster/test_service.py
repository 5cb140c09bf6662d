"""HTTP over a member, and `felrec serve --processes`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
import uvicorn
from members import QUICK, members, wait_until
from typer.testing import CliRunner

from felrec.cli.app import app
from felrec.errors import NotFound, Overloaded, StoreFull
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.locks import ReadWriteLock
from felrec.service.engine.outcomes import Awaited, read_outcome
from felrec.service.http.app import create_app
from felrec.service.http.listening import listen
from felrec.service.http.server import configured
from places import Place
from stores import post

EVENT = {"user": "ada", "item": "tea"}
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_reader_serves_http_and_says_how_old_its_answers_are(place: Place) -> None:
    with members(place, 2, replace(QUICK, behind_seconds=0.5)) as (_, reader), served(reader) as client:
        for number, wait in enumerate(("visible", "durable"), start=1):
            answer = client.post("/v1/interactions", params={"wait": wait}, json=[EVENT])
            assert (answer.status_code, answer.json()["accepted"]) == (200, 1)
            wait_until(partial(_has_events, client, number))
        assert int(client.get("/v1/recommendations/ada").headers["felrec-age-ms"]) < 60_000
        assert client.get("/v1/stats").json()["membership"]["role"] == "reader"
        metrics = client.get("/metrics").text
        for name in ("writer 0.0", "lag_blocks 0.0", "lag_milliseconds", "inbox_depth", "lease_token"):
            assert f"\nfelrec_{name}" in metrics
        release = threading.Event()
        blocked = threading.Thread(target=_block, args=(reader._state.lock, release))
        blocked.start()
        client.post("/v1/interactions", params={"wait": "durable"}, json=[EVENT])
        wait_until(lambda: client.get("/readyz").status_code == 503)
        assert _lag_milliseconds(client) > 500
        assert client.get("/v1/stats").json()["membership"]["age_ms"] > 500  # it does not wait, as the follower does
        release.set()
        blocked.join()
        wait_until(lambda: client.get("/readyz").status_code == 200)


def _lag_milliseconds(client: httpx.Client) -> float:
    (said,) = re.findall(r"^felrec_lag_milliseconds (\S+)", client.get("/metrics").text, re.MULTILINE)
    return float(said)


def _has_events(client: httpx.Client, number: int) -> bool:
    return bool(client.get("/v1/users/ada").json().get("events") == number)


@contextmanager
def served(member: Member) -> Iterator[httpx.Client]:
    """A member over HTTP, from this process."""
    server, listener = uvicorn.Server(configured(create_app(member))), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    wait_until(lambda: server.started)
    with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=60, trust_env=False) as client:
        yield client
    server.should_exit = True
    thread.join(60)


def _block(lock: ReadWriteLock, release: threading.Event) -> None:
    with lock.read():
        release.wait(120)


@pytest.mark.parametrize("error", [NotFound("x"), Overloaded("x", 3.0), StoreFull("x")])
def test_an_error_is_the_same_in_another_process(error: Exception) -> None:
    refused = read_outcome(Awaited("id").refused(error).text).refused
    assert refused is not None
    again = refused.error()
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.slow
def test_processes_of_one_address_are_started_again_and_stop_together(tmp_path: Path) -> None:
    program = "from felrec.cli import main; main()"
    arguments = ("serve", "--processes", "2", "--port", "0", "--lease", "1")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        try:
            assert parent.stdout is not None
            found = re.search(r"http://\S+", parent.stdout.readline())
            assert found is not None
            with httpx.Client(base_url=found[0], timeout=30) as client:
                assert _post(client, "first") == 200
                killed = _children(parent.pid)[0]
                os.kill(killed, signal.SIGKILL)
                assert _post(client, "second") == 200
                wait_until(lambda: len(set(_children(parent.pid)) - {killed}) == 2)
                assert client.get("/v1/users/ada").json()["events"] == 2
            parent.send_signal(signal.SIGTERM)
            assert parent.wait(60) == 0
        finally:
            parent.kill()


def _children(parent: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _post(client: httpx.Client, key: str) -> int:
    """Post until it is acknowledged, with the same key."""
    for _ in range(20):
        try:
            answer = client.post("/v1/interactions", json=[EVENT], headers={"idempotency-key": key})
        except httpx.TransportError:  # the process of this connection was killed
            continue
        if answer.status_code != 503:
            return answer.status_code
    return 503


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_a_shared_store_is_verified_and_exported_while_it_is_in_use(place: Place, tmp_path: Path) -> None:
    runner, named = CliRunner(), ["--namespace", place.namespace] if place.namespace else []
    with members(place, 2) as (_, reader):
        post(reader, [("ada", "tea", 1e9), ("bob", "jam", 1e9 + 1)])
        verified = runner.invoke(app, ["verify", place.address, *named])
        assert "2 events in 1 blocks" in verified.stdout, verified.output
        exported = runner.invoke(app, ["export", place.address, str(tmp_path / "out.csv"), *named])
        assert "2 events of 2 users" in exported.stdout, exported.output
