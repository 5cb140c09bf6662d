"""Safe by default: headers, hosts, keys, limits, one shape for every refusal, and no traceback."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from felrec.answers.types import Refusal
from felrec.errors import ConfigError
from felrec.service.http.keys import KeyFile
from felrec.service.http.logs import JsonLines
from http_service.running import Open, Opened, checked

EVENT = {"user": "ada", "item": "a"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/stats/", 404, "not_found"),
        ("DELETE", "/v1/users/", 404, "not_found"),
        ("GET", "/redoc", 404, "not_found"),
        ("GET", "/static/../api.py", 404, "not_found"),
        ("GET", "/static/%2e%2e/api.py", 404, "not_found"),
        ("DELETE", "/v1/interactions", 405, "method_not_allowed"),
        ("DELETE", "/v1/users/ada/recommendations", 405, "method_not_allowed"),
        ("POST", "/v1/users/ada", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/interactions", 405, "method_not_allowed"),
        ("POST", "/v1/interactions", 415, "unsupported_media_type"),
        ("GET", "/v1/users/ada/recommendations?k=x", 422, "invalid"),
    ],
)
def test_every_refusal_has_one_shape(service: Opened, method: str, path: str, status: int, code: str) -> None:
    answer = service.request(method, path)
    assert answer.status_code == status
    error = checked(Refusal, answer.json()).error
    assert error.code == code
    assert error.request_id == answer.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/stats", "/static/style.css"])
def test_head_is_get_without_the_body(service: Opened, path: str) -> None:
    got, head = service.get(path), service.request("HEAD", path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == got.headers["content-type"]
    assert int(head.headers["content-length"]) > 0


def test_request_ids_come_back(service: Opened) -> None:
    assert service.get("/healthz", headers={"X-Request-ID": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    for bad in ("a b", "x" * 65, "<script>", '"'):
        given = service.get("/healthz", headers={"X-Request-ID": bad}).headers["x-request-id"]
        assert given != bad
        assert len(given) == 32


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/healthz", "/v1/stats", "/nowhere"])
def test_security_headers(service: Opened, path: str) -> None:
    headers = service.get(path, headers={"Origin": "https://evil.example"}).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "server" not in headers
    assert not [name for name in headers if name.startswith("access-control-")]


def test_a_name_of_another_site_is_refused(service: Opened) -> None:
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "127.0.0.2:8000", "[::1]:8000"):
        assert service.get("/healthz", headers={"Host": host}).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.nip.io:8000", ""):
        answer = service.get("/v1/stats", headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "wrong_host"), host


def test_keys_and_scopes(open_service: Open, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    (reader, _), (writer, entry) = keys.add(["read"]), keys.add(["write"])
    service = open_service(keys=keys, hosts=None)

    def status(method: str, path: str, key: str | None, body: object = None) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return service.request(method, path, json=body, headers=headers).status_code

    assert [status("GET", path, None) for path in ("/", "/healthz", "/readyz", "/static/style.css")] == [200] * 4
    for path in ("/v1/stats", "/metrics", "/v1/users", "/v1/users/1/recommendations", "/v1/map"):
        assert [status("GET", path, key) for key in (None, "felrec_x_y", writer, reader)] == [401, 401, 403, 200]
    post = "/v1/interactions"
    assert [status("POST", post, key, EVENT) for key in (None, "x", reader, writer)] == [401, 401, 403, 200]
    assert [status("PUT", "/v1/items/a", key, {}) for key in (None, reader, writer)] == [401, 403, 200]
    assert [status("DELETE", "/v1/users/ada", key) for key in (None, reader, writer)] == [401, 403, 200]
    assert service.get("/v1/stats").headers["www-authenticate"] == "Bearer"
    keys.remove(entry.id)
    assert status("POST", "/v1/interactions", writer, EVENT) == 401


def test_a_file_of_keys_that_cannot_be_read_leaves_the_keys_as_they_were(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    secret, entry = keys.add(["read"])
    serving = KeyFile(keys.path)
    assert serving.find(secret) == entry
    keys.path.write_text("half of it")
    assert serving.find(secret) == entry
    with pytest.raises(ConfigError, match="not a key file"):
        KeyFile(keys.path).entries()
    keys.path.unlink()
    keys.path.mkdir()  # as unreadable as the file of another user is to a service, also for root
    assert serving.find(secret) == entry
    with pytest.raises(ConfigError, match="as the user of the service"):
        KeyFile(keys.path).entries()


def test_a_file_of_keys_whose_rights_were_mended_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    secret, entry = keys.add(["read"])
    serving = KeyFile(keys.path)
    assert serving.find(secret)
    with monkeypatch.context() as patch:  # root, who may run this, can read every file
        patch.setattr(Path, "read_text", _refused)
        keys.path.write_text(
            keys.path.read_bytes().decode().replace(entry.id, "00000000").replace(entry.sha256, "0" * 64)
        )
        assert serving.find(secret)
    keys.path.chmod(0o640)
    assert serving.find(secret) is None


def _refused(*_: object, **__: object) -> str:
    raise PermissionError(13, "Permission denied")


def test_the_file_of_keys_holds_no_key(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "deep" / "keys.json")
    secret, entry = keys.add(["read", "write"], "for me")
    text = keys.path.read_text()
    assert secret.removeprefix(f"felrec_{entry.id}_") not in text
    assert keys.path.stat().st_mode & 0o077 == 0
    assert KeyFile(keys.path).entries() == [entry]


def test_nothing_of_an_unexpected_error_leaves(service: Opened, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise RuntimeError("the secret of the house")

    service.app.add_api_route("/broken", broken)
    answer = service.get("/broken", headers={"X-Request-ID": "find-me"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert checked(Refusal, answer.json()).error.code == "internal"
    assert answer.headers["x-content-type-options"] == "nosniff"
    record = next(record for record in caplog.records if record.message == "unexpected error")
    line = json.loads(JsonLines().format(record))
    assert line["request_id"] == "find-me"
    assert "the secret of the house" in line["exception"]


def test_log_lines_name_the_route_and_no_user(service: Opened, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    service.get("/v1/users/ada-lovelace/recommendations", headers={"X-Request-ID": "r1"})
    service.post("/v1/interactions", json={"user": "ada-lovelace", "item": "a"})
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records if record.name.startswith("felrec")]
    asked = next(line for line in lines if line.get("request_id") == "r1")
    assert (asked["message"], asked["method"], asked["status"]) == ("request", "GET", 200)
    assert asked["route"] == "/v1/users/{id}/recommendations"
    assert asked["milliseconds"] > 0
    assert "ada-lovelace" not in json.dumps(lines)
