"""Health, readiness, metrics, and that the dashboard and the alerts ask for metrics that exist."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from disks import fill, small_disk
from felrec.answers.statistics import Stats
from http_service.running import Open, Opened, checked, start

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def metrics(service: Opened) -> dict[str, float]:
    """Every sample by name, summed over its labels."""
    totals: dict[str, float] = {}
    for family in text_string_to_metric_families(service.get("/metrics").text):
        for sample in family.samples:
            totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    return totals


@pytest.fixture
def used(service: Opened) -> Opened:
    """A service that has had requests of several kinds."""
    service.post("/v1/interactions", json=[{"user": "ada", "item": "a"}, {"user": ""}])
    service.post("/v1/interactions", json={"user": "ada", "item": "b", "timestamp": 1})
    service.get("/v1/users/ada/recommendations")
    return service


def test_alive_and_ready(service: Opened) -> None:
    assert service.get("/healthz").json() == {"status": "alive"}
    assert service.get("/readyz").json() == {"status": "ready"}


def test_nothing_of_the_status_waits_while_a_change_waits_for_a_slow_reader(used: Opened) -> None:
    lock = used.app.state.service.engine._state.lock

    def change() -> None:
        with lock.write():
            pass

    waiting = threading.Thread(target=change)
    with lock.read():  # as a slow answer has it
        waiting.start()
        while not lock._waiting:
            time.sleep(0.001)
        try:
            for path in ("/v1/stats", "/metrics", "/readyz", "/healthz"):
                assert used.get(path, timeout=30).status_code == 200
        finally:
            assert lock._waiting
    waiting.join()


def test_metrics_count(used: Opened) -> None:
    before = metrics(used)
    used.post("/v1/interactions", json=[{"user": "ada", "item": "c"}, {"user": "ada", "item": ""}, 7])
    after = metrics(used)
    grown = {name: after[name] - before[name] for name in ("felrec_events_total", "felrec_rejected_rows_total")}
    assert grown == {"felrec_events_total": 1, "felrec_rejected_rows_total": 2}
    assert after["felrec_items"] == before["felrec_items"] + 1
    assert after["felrec_cold_items"] >= 3
    assert after["felrec_queue_depth"] == 0
    assert after["felrec_last_commit_seconds"] > 0
    assert after["process_resident_memory_bytes"] > 2**20


def test_metrics_say_how_many_items_an_answer_scores(used: Opened) -> None:
    before = metrics(used)
    used.get("/v1/users/ada/recommendations")
    after = metrics(used)
    assert after["felrec_items_scored_count"] == before["felrec_items_scored_count"] + 1
    assert after["felrec_items_scored_sum"] > before["felrec_items_scored_sum"]
    assert after["felrec_pruned"] in (0, 1)


def test_routes_are_counted_by_template(used: Opened) -> None:
    text = used.get("/metrics").text
    assert 'felrec_request_seconds_count{method="GET",route="/v1/users/{id}/recommendations",status="200"}' in text
    assert 'route="/v1/interactions"' in text
    used.get("/some/where")
    assert 'route="none",status="404"' in used.get("/metrics").text
    assert "ada" not in text


def test_latencies_are_named_by_what_was_asked(used: Opened) -> None:
    for path in ("/", "/static/style.css", "/v1/users/ada", "/v1/users/ada/recommendations"):
        assert used.get(path).status_code == 200
    named = used.get("/v1/stats").json()["latencies"]
    assert {"users", "recommendations"} <= named.keys()
    assert not {"", "none", "{id}", "style.css"} & named.keys()


def test_what_somebody_sends_is_no_label(service: Opened) -> None:
    assert service.request("PROPFIND", "/v1/stats").status_code == 405
    text = service.get("/metrics").text
    assert 'method="other"' in text
    assert "PROPFIND" not in text


def test_a_service_that_stops_is_not_ready(service: Opened) -> None:
    state = service.app.state.service
    assert metrics(service)["felrec_ready"] == 1
    state.stopping = True
    try:
        assert metrics(service)["felrec_ready"] == 0
        assert not service.get("/v1/stats").json()["ready"]
        assert service.get("/readyz").status_code == 503
    finally:
        state.stopping = False


def test_a_service_whose_store_was_removed_is_not_ready_and_says_why(open_service: Open) -> None:
    service = open_service()
    service.store.path.unlink()
    refused = service.get("/readyz")
    assert refused.status_code == 503
    assert "files of its store were removed or replaced" in refused.json()["error"]["message"]
    assert str(service.store.path.parent) not in refused.text  # anybody may ask
    answer = service.post("/v1/interactions", json={"user": "ada", "item": "a"})
    assert answer.status_code == 503
    assert "so nothing was stored; the operator must put them back" in answer.json()["error"]["message"]
    assert service.get("/v1/users/1/recommendations").status_code == 200


def test_a_full_disk_leaves_the_service_ready_to_read(open_service: Open) -> None:
    service = open_service()
    service.store.limit(1)
    rows = [{"user": f"user {n}", "item": f"item {n}"} for n in range(500)]
    assert service.post("/v1/interactions", json=rows).status_code == 507
    assert (service.get("/readyz").status_code, service.get("/readyz").json()) == (200, {"status": "read-only"})
    service.store.limit(None)
    assert service.post("/v1/interactions", json=rows).status_code == 200
    assert service.get("/readyz").json() == {"status": "ready"}


def test_a_service_that_starts_on_a_full_disk_reads_and_recovers(run: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        with start(run, disk / "s") as running:
            httpx.post(f"{running.url}/v1/interactions", json={"user": "ada", "item": "1"}).raise_for_status()
            assert running.stop() == 0
        filler = fill(disk)
        with start(run, disk / "s") as running, httpx.Client(base_url=running.url) as client:
            assert client.get("/readyz").json() == {"status": "read-only"}
            assert client.get("/v1/users/ada/recommendations").status_code == 200
            assert client.post("/v1/interactions", json={"user": "ada", "item": "2"}).status_code == 507
            assert "no space left" in running.errors.read_text()
            filler.unlink()
            until = time.monotonic() + 60
            while client.post("/v1/interactions", json={"user": "ada", "item": "2"}).status_code != 200:
                assert time.monotonic() < until
                time.sleep(0.05)
            assert client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/interactions"), ("PUT", "/v1/items/a")])
def test_who_hangs_up_is_no_error_of_ours(service: Opened, method: str, path: str) -> None:
    counted = f'method="{method}",route="{{route}}",status="499"'.replace("{route}", path.replace("/a", "/{id}"))
    with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2]))) as connection:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        time.sleep(0.1)  # the request is being read
    until = time.monotonic() + 60
    while counted not in service.get("/metrics").text:
        assert time.monotonic() < until, service.get("/metrics").text
        time.sleep(0.02)


def test_stats_for_people(used: Opened) -> None:
    stats = checked(Stats, used.get("/v1/stats").json())
    assert stats.ready
    assert stats.durable
    assert stats.model == "felrec-q"
    assert stats.latencies["recommendations"].p99 >= stats.latencies["recommendations"].p50 > 0
    assert stats.events_per_second > 0
    assert stats.memory_bytes > 2**20
    assert stats.bias.requests >= 1


def test_every_answer_of_the_interface_is_described(service: Opened) -> None:
    paths = service.get("/openapi.json").json()["paths"]
    answers = {
        f"{method} {path}": operation["responses"]["200"]["content"]["application/json"]["schema"]
        for path, operations in paths.items()
        for method, operation in operations.items()
        if path.startswith("/v1/") and "200" in operation["responses"]
    }
    assert "get /v1/stats" in answers
    assert [name for name, schema in answers.items() if "$ref" not in schema] == []


def test_the_dashboard_asks_for_metrics_that_exist(used: Opened) -> None:
    used.get("/metrics")
    known = set(metrics(used)) | {"felrec_refused_requests_total"}  # has no sample before the first refusal
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) > 15
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    queries += re.findall(r"expr: (?:>-\s+)?(.*)", (DEPLOY / "alerts.yml").read_text())
    for query in queries:
        names = set(re.findall(r"\b(?:felrec|process)_\w+", query))
        assert names <= known, query
        assert names or "up{" in query


def test_routes_that_the_dashboard_names_exist(service: Opened) -> None:
    paths = service.get("/openapi.json").json()["paths"]
    text = (DEPLOY / "grafana-dashboard.json").read_text() + (DEPLOY / "alerts.yml").read_text()
    named = set(re.findall(r'route=\\?"([^"\\]+)', text))
    assert named
    assert named <= set(paths)


def test_the_production_page_lists_every_metric(used: Opened) -> None:
    page = (DEPLOY.parent / "docs" / "production.md").read_text()
    listed = set(re.findall(r"`(felrec_\w+)`", page))
    exported = {family.name for family in text_string_to_metric_families(used.get("/metrics").text)}
    ours = {name for name in exported if name.startswith("felrec_")} | {"felrec_refused_requests"}
    assert {name.removesuffix("_total") for name in listed} == {name.removesuffix("_created") for name in ours}
