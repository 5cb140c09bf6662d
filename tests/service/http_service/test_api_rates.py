"""Rate limits of keys: a token bucket for requests and one for events, exact by the clock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from felrec.errors import ConfigError
from felrec.service.http.keys import Key, KeyFile
from felrec.service.http.problems import Problem
from felrec.service.http.rates import RateLimits, TokenBucket
from http_service.running import Open, Opened

EVENT = {"user": "ada", "item": "a"}


class Clock:
    """A clock that a test turns."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def opened(open_service: Open, keys: KeyFile, clock: Clock) -> Opened:
    service = open_service(keys=keys, hosts=None)
    service.app.state.service.rates.clock = clock
    return service


def send(service: Opened, secret: str, *events: object) -> httpx.Response:
    """Post events, or ask if there are none."""
    headers = {"Authorization": f"Bearer {secret}"}
    if events:
        return service.post("/v1/interactions", json=list(events), headers=headers)
    return service.get("/v1/users", headers=headers)


def test_a_second_of_requests_at_once_and_then_the_rate(open_service: Open, tmp_path: Path) -> None:
    keys, clock = KeyFile(tmp_path / "keys.json"), Clock()
    (limited, _), (free, _) = keys.add(["read"], requests_per_second=3), keys.add(["read"])
    service = opened(open_service, keys, clock)
    assert [send(service, limited).status_code for _ in range(5)] == [200] * 3 + [429] * 2
    refused = send(service, limited)
    assert refused.json()["error"]["code"] == "overloaded"
    assert "3 requests a second" in refused.json()["error"]["message"]
    assert refused.headers["retry-after"] == "1"
    assert {send(service, free).status_code for _ in range(10)} == {200}
    clock.now += 1 / 3
    assert [send(service, limited).status_code for _ in range(2)] == [200, 429]
    clock.now += 60
    assert [send(service, limited).status_code for _ in range(4)] == [200] * 3 + [429]
    assert service.get("/healthz").status_code == 200


def test_events_are_counted_and_a_large_post_is_paid_off(open_service: Open, tmp_path: Path) -> None:
    keys, clock = KeyFile(tmp_path / "keys.json"), Clock()
    secret, _ = keys.add(["write"], events_per_second=10)
    service = opened(open_service, keys, clock)
    assert send(service, secret, *[EVENT] * 100).json()["accepted"] == 100
    refused = send(service, secret, EVENT)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
    assert "10 events a second" in refused.json()["error"]["message"]
    headers = {"Authorization": f"Bearer {secret}"}
    assert service.put("/v1/items/a", json={}, headers=headers).status_code == 200
    clock.now += 9
    assert send(service, secret, EVENT).status_code == 429
    clock.now += int(send(service, secret, EVENT).headers["retry-after"])
    assert send(service, secret, EVENT).status_code == 200
    clock.now += 60
    assert send(service, secret, *[{"user": "no item"}] * 20).status_code == 422
    assert send(service, secret, EVENT).status_code == 429  # rejected rows count: they were parsed too


def test_over_time_a_bucket_gives_its_rate_exactly() -> None:
    for rate in (0.3, 1.0, 7.0):
        bucket, taken, step, seconds = TokenBucket(rate, now=0.0), 0, 0.01, 100
        for n in range(round(seconds / step)):
            taken += bucket.take(1, n * step) == 0.0
        assert taken == int(max(1, rate) + rate * (seconds - step) + 1e-6)


@pytest.mark.parametrize("rate", [0.1, 1 / 3, 3.0, 123.4])
def test_who_waits_as_told_is_let_in(rate: float) -> None:
    bucket, now = TokenBucket(rate, now=0.0), 0.0
    for size in (1, 7, 10_000, 1) * 10:
        now += bucket.take(size, now)
        wait = bucket.take(1, now)
        assert bucket.take(0, now + wait / 2) > 0 or not wait
        now += wait
        assert bucket.take(0, now) == 0.0


def test_a_changed_limit_holds_from_the_next_request_on() -> None:
    clock = Clock()
    rates, key = RateLimits(clock), Key("id", "", ("read",), "", "", requests_per_second=1)
    rates.check_request(key)
    with pytest.raises(Problem):
        rates.check_request(key)
    for _ in range(2):
        rates.check_request(replace(key, requests_per_second=2))
    rates.check_request(replace(key, requests_per_second=None))
    with pytest.raises(Problem):
        rates.check_request(key)


def test_files_of_keys_without_limits_are_read_and_stay_as_they_were(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    secret, _ = keys.add(["read"], "old")
    (old,) = json.loads(keys.path.read_text())["keys"]
    assert old.keys() == {"id", "name", "scopes", "sha256", "created"}  # what versions before limits can read
    _, limited = keys.add(["write"], "new", requests_per_second=2.5, events_per_second=100)
    found = KeyFile(keys.path)
    assert found.entries()[1] == limited
    key = found.find(secret)
    assert key is not None
    assert (key.requests_per_second, key.events_per_second) == (None, None)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_impossible_limits_are_refused(tmp_path: Path, rate: float) -> None:
    for limits in ((rate, None), (None, rate)):
        with pytest.raises(ConfigError, match="give a number above 0"):
            KeyFile(tmp_path / "keys.json").add(["read"], "", *limits)
    assert not (tmp_path / "keys.json").exists()
