"""`felrec keys` with rate limits, and `felrec audit`."""

from __future__ import annotations

from pathlib import Path

from felrec.service.http.audit import Digests
from felrec.service.http.keys import KeyFile

from .conftest import Felrec


def test_limits_are_stored_with_the_key_and_listed(felrec: Felrec, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    limits = ("--requests-per-second", 200, "--events-per-second", 0.5)
    assert felrec("keys", "add", "--scope", "write", "--name", "collector", *limits, "--keys", file).returncode == 0
    assert felrec("keys", "add", "--scope", "read", "--name", "window", "--keys", file).returncode == 0
    limited, free = KeyFile(file).entries()
    assert (limited.requests_per_second, limited.events_per_second) == (200, 0.5)
    lines = felrec("keys", "list", "--keys", file).stdout.splitlines()
    assert lines[0].split() == ["id", "scopes", "created", "name", "requests/s", "events/s"]
    assert lines[1].split() == [limited.id, "write", limited.created, "collector", "200", "0.5"]
    assert lines[2].split() == [free.id, "read", free.created, "window", "no", "limit", "no", "limit"]


def test_an_impossible_limit_is_one_line(felrec: Felrec, tmp_path: Path) -> None:
    done = felrec("keys", "add", "--scope", "read", "--requests-per-second", 0, "--keys", tmp_path / "keys.json")
    assert done.returncode == 2
    assert "give a number above 0" in done.stderr
    assert done.stderr.count("\n") == 1


def test_audit_prints_the_digest_of_an_id(felrec: Felrec, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    assert "no such key" in felrec("audit", store, "--user", "ada").stderr
    digests = Digests.beside(store)
    assert felrec("audit", store, "--user", "ada").stdout.strip() == digests.of("user", "ada")
    assert felrec("audit", store, "--item", "ada").stdout.strip() == digests.of("item", "ada")
    for wrong in ((), ("--user", "a", "--item", "b")):
        done = felrec("audit", store, *wrong)
        assert (done.returncode, done.stderr) == (2, "felrec: give either --user ID or --item ID\n")
