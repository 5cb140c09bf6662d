"""`felrec serve` in a process of its own: refusals to start, a graceful stop, overload, the examples of the docs."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

import needs
from felrec.service.engine.limits import Limits
from http_service.running import ENVIRONMENT, Open, command, start

ROOT = Path(__file__).resolve().parents[3]


def run_to_the_end(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), text=True, capture_output=True, timeout=120, env=ENVIRONMENT)


def test_another_address_needs_keys(run: Path, tmp_path: Path) -> None:
    done = run_to_the_end("serve", run, "--host", "0.0.0.0", "--store", tmp_path / "s")
    assert done.returncode == 2
    assert "needs API keys" in done.stderr
    assert done.stderr.count("\n") == 1
    done = run_to_the_end("serve", run, "--host", "0.0.0.0", "--keys", tmp_path / "keys.json")
    assert done.returncode == 2
    assert "has no keys yet" in done.stderr


def test_keys_from_the_command_line_let_others_in(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    secret = run_to_the_end("keys", "add", "--scope", "read", "--name", "window", "--keys", file).stdout.strip()
    assert secret.startswith("felrec_")
    listed = run_to_the_end("keys", "list", "--keys", file).stdout
    assert "window" in listed
    assert secret not in listed
    with start(run, tmp_path / "s", "--host", "0.0.0.0", "--keys", file) as running:
        url = running.url.replace("0.0.0.0", "127.0.0.1")
        asked = {"Authorization": f"Bearer {secret}", "Host": "shop.example"}
        assert httpx.get(f"{url}/v1/stats", headers=asked).status_code == 200
        assert httpx.get(f"{url}/v1/stats").status_code == 401
        assert run_to_the_end("keys", "remove", secret.split("_")[1], "--keys", file).returncode == 0
        assert httpx.get(f"{url}/v1/stats", headers=asked).status_code == 401


def test_a_port_that_is_taken_is_one_line(run: Path, server: str, tmp_path: Path) -> None:
    done = run_to_the_end("serve", run, "--store", tmp_path / "s", "--port", server.rpartition(":")[2])
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_stop_loses_nothing(run: Path, tmp_path: Path, how: signal.Signals) -> None:
    store, accepted, statuses = tmp_path / "store.sqlite", Counter[str](), Counter[int]()
    with start(run, store) as running:
        began = httpx.get(f"{running.url}/v1/stats").json()["events"]

        def post(name: str) -> None:
            with httpx.Client(base_url=running.url, timeout=60) as client:
                while True:
                    try:
                        answer = client.post("/v1/interactions", json=[{"user": name, "item": "a"}] * 20)
                    except httpx.TransportError:  # it listens no more
                        return
                    statuses[answer.status_code] += 1
                    accepted[name] += answer.json().get("accepted", 0)

        threads = [threading.Thread(target=post, args=(f"u{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        with httpx.Client(base_url=running.url, timeout=60) as balancer:
            assert balancer.get("/readyz").status_code == 200
            time.sleep(1)
            running.process.send_signal(how)
            while (ready := balancer.get("/readyz")).status_code == 200:
                pass
            assert (ready.status_code, ready.json()["error"]["code"]) == (503, "unavailable")
            assert balancer.get("/healthz").status_code == 200
        assert running.process.wait(60) == 0
        for thread in threads:
            thread.join(60)
        lines = [json.loads(line) for line in running.errors.read_text().splitlines()]
    assert accepted.total() > 0
    assert set(statuses) == {200, 503}
    assert any(line["message"] == "stopping" for line in lines)
    assert not any("exception" in line for line in lines)
    with start(run, store) as again:
        assert httpx.get(f"{again.url}/v1/stats").json()["events"] == began + accepted.total()


@pytest.mark.parametrize("limits", [Limits(queue=500), Limits(queue_seconds=0.05)], ids=["events", "seconds"])
def test_three_times_the_load_it_can_take(open_service: Open, limits: Limits) -> None:
    service = open_service(limits=limits)
    before = service.count()

    async def flood(posts: int) -> tuple[Counter[int], int]:
        statuses, accepted = Counter[int](), 0
        limits = httpx.Limits(max_connections=60)
        async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as client:

            async def post(number: int) -> httpx.Response:
                rows = [{"user": f"u{number}", "item": f"i{n % 50}"} for n in range(100)]
                return await client.post("/v1/interactions", json=rows)

            for answer in await asyncio.gather(*map(post, range(posts))):
                statuses[answer.status_code] += 1
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) >= 1
                else:
                    accepted += answer.json()["accepted"]
        return statuses, accepted

    statuses, accepted = asyncio.run(flood(150))
    assert set(statuses) == {200, 429}
    deadline = time.monotonic() + 60
    while service.count("queue_depth"):
        assert time.monotonic() < deadline
    assert service.post("/v1/interactions", json={"user": "a", "item": "b"}).status_code == 200
    assert service.count() == before + accepted + 1


def test_a_full_disk_is_507_and_reading_goes_on(open_service: Open) -> None:
    service = open_service()
    service.store.limit(1)
    rows = [{"user": f"u{n}", "item": f"i{n}"} for n in range(10_000)]
    answer = service.post("/v1/interactions", json=rows)
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "store_full")
    assert service.get("/v1/users/ada/recommendations").status_code == 200
    assert service.get("/readyz").status_code == 200
    assert not service.get("/v1/stats").json()["durable"]
    service.store.limit(None)
    assert service.post("/v1/interactions", json=rows[:100]).json()["accepted"] == 100
    assert service.get("/v1/stats").json()["durable"]


def curl_lines() -> list[str]:
    text = (ROOT / "docs" / "howto" / "serve.md").read_text()
    return [line for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE) if "curl " in line]


def test_the_curl_examples_of_the_docs_work(server: str) -> None:
    needs.program("curl")
    lines = curl_lines()
    assert len(lines) > 15
    for line in lines:
        here = line.replace("localhost:8000", server.removeprefix("http://"))
        here = here.replace("curl -s", f"curl -s --fail-with-body -w {shlex.quote('%{stderr}%{http_code}')}")
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {here}"], text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        assert done.stderr in ("200", "204"), line


def test_the_python_example_of_the_docs_works(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "howto" / "serve.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[0]
    exec(compile(code.replace("http://127.0.0.1:8000", server), "serve.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "3 ()"
    assert len(printed) == 6


def test_a_new_store_says_what_it_lacks(run: Path, tmp_path: Path) -> None:
    said = []
    for _ in range(2):
        process = subprocess.Popen(
            command("serve", run, "--store", tmp_path / "s", "--port", 0),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
        )
        assert process.stdout is not None
        assert "serving at" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said.append(process.communicate(timeout=60)[1])
    assert "starts after the validation part of the run's log; add the rest with felrec import LOG" in said[0]
    assert "begins after" not in said[1]  # only when it is made


def test_the_first_client_does_not_wait_for_routes_to_be_built(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_service()

    def too_late(*_: object) -> NoReturn:
        raise AssertionError("a route is built while a client waits")

    monkeypatch.setattr("fastapi.routing._IncludedRouter._build_effective_context", too_late)
    assert service.get("/v1/stats").status_code == 200
