"""A service at its limits of users, items and memory: 507 for what is new, and everything else goes on."""

from __future__ import annotations

import math
from pathlib import Path

import httpx
import pytest

from felrec.answers.statistics import Stats
from felrec.answers.types import (
    Receipt,
    Refusal,
)
from felrec.cli.serve_limits import read_memory
from felrec.client import Client
from felrec.errors import ConfigError, ServiceError
from felrec.service.engine.limits import Limits
from felrec.service.engine.memory import available_bytes
from http_service.running import Open, checked, start

HEADERS = {"Content-Type": "application/x-ndjson"}


def test_rows_with_new_ids_are_rejected_and_the_rest_is_accepted(open_service: Open) -> None:
    service = open_service(limits=Limits(users=50))
    body = '{"user": "new", "item": 1}\n\n{"user": 1, "item": 1}\n{"item": 2}\n{"user": "newer", "item": 1}'
    answer = service.post("/v1/interactions", content=body, headers=HEADERS)
    assert answer.status_code == 200
    rejected = checked(Receipt, answer.json()).rejected
    assert [row.row for row in rejected] == [0, 3, 4]  # lines of the body, empty ones counted
    assert "limit of 50 users" in rejected[0].reason
    assert "user" in rejected[1].reason


def test_a_post_with_nothing_acceptable_is_507(open_service: Open) -> None:
    service = open_service(limits=Limits(users=50))
    rows = [{"item": 1}, {"user": "new", "item": 1}]
    answer = service.post("/v1/interactions", json=rows, headers={"Idempotency-Key": "k"})
    refusal = checked(Refusal, answer.json())
    assert (answer.status_code, refusal.error.code, refusal.accepted) == (507, "capacity_reached", 0)
    assert refusal.error.message.startswith("nothing was stored; row 1: no room for a new user: the limit of 50 users")
    assert refusal.rejected is not None
    assert [row.row for row in refusal.rejected] == [0, 1]
    assert "retry-after" not in answer.headers  # waiting does not help
    assert service.get("/v1/users/new").status_code == 404
    assert service.get("/v1/users/new/recommendations").status_code == 200
    assert 'felrec_refused_requests_total{status="507"} 1.0' in service.get("/metrics").text
    with Client(service.url) as client, pytest.raises(ServiceError, match="limit of 50 users") as refused:
        client.record([("new", "1")])
    assert (refused.value.status, refused.value.code) == (507, "capacity_reached")


def test_a_new_item_is_507_and_a_known_one_is_not(open_service: Open) -> None:
    service = open_service(limits=Limits(memory=1))
    answer = service.put("/v1/items/new", json={"title": "New"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "capacity_reached")
    assert service.put("/v1/items/1", json={"available": False}).status_code == 200


def test_limits_and_how_full_they_are_are_shown(open_service: Open) -> None:
    service = open_service(limits=Limits(users=50, memory=2**40))
    service.put("/v1/items/new", json={"title": "New"})
    stats = checked(Stats, service.get("/v1/stats").json())
    assert (stats.users, stats.users_limit, stats.items_limit, stats.memory_limit) == (56, 50, None, 2**40)
    assert stats.described_items == 1
    lines = [
        line.split(" ") for line in service.get("/metrics").text.splitlines() if "_limit" in line and "#" not in line
    ]
    metrics = {name: float(value) for name, value in lines}
    assert metrics["felrec_users_limit"] == 50
    assert metrics["felrec_items_limit"] == math.inf
    assert metrics["felrec_memory_limit_bytes"] == 2**40


def test_the_options_of_felrec_serve(run: Path, tmp_path: Path) -> None:
    options = ("--max-users", 50, "--max-items", 1_000_000, "--max-memory", "100GB")
    with (
        start(run, tmp_path / "store.sqlite", *options) as running,
        httpx.Client(base_url=running.url, timeout=60, trust_env=False) as client,
    ):
        stats = checked(Stats, client.get("/v1/stats").json())
        assert (stats.users_limit, stats.items_limit, stats.memory_limit) == (50, 1_000_000, 100 * 10**9)
        assert client.post("/v1/interactions", json={"user": "new", "item": 1}).status_code == 507


def test_sizes_of_memory() -> None:
    assert read_memory("500MB") == 500_000_000
    assert read_memory("80%") == int(0.8 * available_bytes())
    for wrong in ("2", "0GB", "GB", "lots", "-1GB", "2gb"):
        with pytest.raises(ConfigError, match="give a size such as 2GB"):
            read_memory(wrong)
