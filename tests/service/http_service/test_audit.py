"""The audit log: every write with its key and its result, without ids in clear, from a thread that nobody waits for."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from felrec.errors import ConfigError
from felrec.service.http.audit import AuditLog, Digests, key_file
from felrec.service.http.keys import KeyFile
from http_service.running import Open, Opened, start

USER, ITEM = "ada-lovelace", "song/ü 1"


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[AuditLog]:
    log = AuditLog(tmp_path / "audit.jsonl", Digests.beside(tmp_path / "store.sqlite"))
    yield log
    log.close()


def writes(service: Opened) -> None:
    """All kinds of writes, good and bad, between reads."""
    headers = {"X-Request-ID": "r1"}
    service.post("/v1/interactions", json=[{"user": USER, "item": ITEM}, {"user": USER}], headers=headers)
    service.post("/v1/interactions", json=[{"user": USER}])
    service.get(f"/v1/users/{USER}")
    service.post("/v1/recommendations", json={"items": [ITEM]})
    service.put("/v1/items/song%2F%C3%BC%201", json={"title": "A secret title"})
    service.put("/v1/items/song%2F%C3%BC%201", json={"colour": "red"})
    service.delete("/v1/items/song%2F%C3%BC%201")
    service.delete(f"/v1/users/{USER}")
    service.delete(f"/v1/users/{USER}")


def test_writes_are_recorded_without_ids(open_service: Open, log: AuditLog, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    secret, key = keys.add(["read", "write"], "collector")
    service = open_service(keys=keys, hosts=None, audit=log)
    service.post("/v1/interactions", json={"user": USER, "item": ITEM})  # without a key: refused before its route
    service.headers["Authorization"] = f"Bearer {secret}"
    writes(service)
    service.stop()
    found = entries(log.path)
    post, items, users = "/v1/interactions", "/v1/items/{id}", "/v1/users/{id}"
    assert [(one["method"], one["route"], one["status"]) for one in found] == [
        ("POST", post, 200),
        ("POST", post, 422),
        ("PUT", items, 200),
        ("PUT", items, 422),
        ("DELETE", items, 204),
        ("DELETE", users, 200),
        ("DELETE", users, 404),
    ]
    assert {(one["key"], one["name"]) for one in found} == {(key.id, "collector")}
    assert (found[0]["events"], found[0]["rejected"], found[0]["request_id"]) == (1, 1, "r1")
    assert (found[1]["events"], found[1]["rejected"]) == (0, 1)
    digests = Digests.existing(tmp_path / "store.sqlite")
    assert {one["item"] for one in found[2:5]} == {digests.of("item", ITEM)}
    assert {one["user"] for one in found[5:]} == {digests.of("user", USER)}
    assert found[5]["events"] == 1
    for word in (USER, ITEM, "song", "secret", secret, secret.rpartition("_")[2]):
        assert word not in log.path.read_text()
    assert [one["time"] for one in found] == sorted(one["time"] for one in found)


def test_without_keys_nobody_is_named(open_service: Open, log: AuditLog) -> None:
    service = open_service(audit=log)
    writes(service)
    service.stop()
    assert len(entries(log.path)) == 7
    assert {(one["key"], one["name"]) for one in entries(log.path)} == {(None, None)}


def test_log_and_key_are_private_and_the_key_stays(tmp_path: Path, log: AuditLog) -> None:
    store = tmp_path / "store.sqlite"
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert key_file(store).stat().st_mode & 0o777 == 0o600
    assert Digests.beside(store) == log.digests == Digests.existing(store)
    assert Digests.beside(tmp_path / "other").of("user", "ada") != log.digests.of("user", "ada")


def test_a_rotated_file_is_created_again(tmp_path: Path, log: AuditLog) -> None:
    log.record(number=1)
    wait_for(log.path, 1)
    log.path.rename(tmp_path / "audit.jsonl.1")
    log.record(number=2)
    wait_for(log.path, 1)
    log.path.unlink()
    log.record(number=3)
    log.close()
    assert [one["number"] for one in entries(tmp_path / "audit.jsonl.1")] == [1]
    assert [one["number"] for one in entries(log.path)] == [3]
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_an_existing_file_is_appended_to(tmp_path: Path) -> None:
    for number in range(2):
        log = AuditLog(tmp_path / "audit.jsonl", Digests(b"key"))
        log.record(number=number)
        log.close()
    assert [one["number"] for one in entries(tmp_path / "audit.jsonl")] == [0, 1]


def test_nobody_waits_for_a_slow_disk_and_drops_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_service: Open
) -> None:
    begun, released, write = threading.Event(), threading.Event(), os.write

    def slow(file: int, line: bytes) -> int:
        if b'"time"' in line:
            begun.set()
            released.wait(60)
        return write(file, line)

    monkeypatch.setattr(os, "write", slow)
    log = AuditLog(tmp_path / "audit.jsonl", Digests(b"key"), waiting=2)
    service = open_service(audit=log)
    assert service.put("/v1/items/0", json={}).status_code == 200
    assert begun.wait(60)
    for n in range(1, 6):
        assert service.put(f"/v1/items/{n}", json={}).status_code == 200
    assert "felrec_audit_dropped_total 3.0" in service.get("/metrics").text
    released.set()
    service.stop()
    assert [one["item"] for one in entries(log.path)] == [log.digests.of("item", str(n)) for n in range(3)]


def test_a_full_disk_loses_entries_but_never_tears_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log, write = AuditLog(tmp_path / "audit.jsonl", Digests(b"key")), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, line: write(file, line[:10]))
        for number in range(3):
            log.record(number=number)
        wait_until_dropped(log, 3)
    log.record(number=3)
    log.close()
    assert json.loads(log.path.read_text().splitlines()[-1])["number"] == 3
    reports = [record for record in caplog.records if record.message == "audit entries are being dropped"]
    assert len(reports) == 1


def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the audit log cannot be written"):
        AuditLog(tmp_path / "nowhere" / "audit.jsonl", Digests(b"key"))
    with pytest.raises(ConfigError, match="no such key"):
        Digests.existing(tmp_path / "store")
    key_file(tmp_path / "store").write_text("not hexadecimal")
    with pytest.raises(ConfigError, match="not the key of an audit log"):
        Digests.beside(tmp_path / "store")


def test_serve_writes_it_and_the_command_finds_an_id(run: Path, tmp_path: Path) -> None:
    store, file = tmp_path / "store.sqlite", tmp_path / "audit.jsonl"
    with start(run, store, "--audit", file) as running:
        assert httpx.delete(f"{running.url}/v1/users/1").status_code == 200
        assert running.stop() == 0
    (entry,) = entries(file)
    assert entry["user"] == Digests.existing(store).of("user", "1")
    assert entry["events"] > 0


def wait_for(path: Path, lines: int) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() or len(path.read_text().splitlines()) < lines:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_until_dropped(log: AuditLog, count: int) -> None:
    deadline = time.monotonic() + 30
    while log.dropped < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
