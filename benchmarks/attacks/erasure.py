"""Attacks on the promise of erasure: what is left in files, and in answers."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from attacks.load import made_up_events
from attacks.target import Code, Service
from attacks.verdict import Attack, Finding, judge

USER, ITEM, TITLE, TAG = "ada-the-erased", "item-4711-of-one", "Private diary", "tag-0815-of-one"
USERS = 200  # of the made-up events
SECRETS = (USER, ITEM, TITLE, TAG)


def traces(code: Code) -> Finding:
    with code.folder() as folder:
        store = folder / "clean" / "store.sqlite"
        store.parent.mkdir()
        with code.serving(store) as service:
            _confide(service)
            status = service.status("DELETE", f"/v1/users/{USER}")
            left = _found(store.parent)
            service.kill()
        store = folder / "killed" / "store.sqlite"
        store.parent.mkdir()
        killed = _killed_before_cleaning(code, store)
    return judge(
        (f"erased ({status}); in files after it: {', '.join(left) or 'nothing'}", status == 200 and not left),
        (f"killed between commit and clean-up, after the next start: {', '.join(killed) or 'nothing'}", not killed),
    )


def _confide(service: Service) -> None:
    """Events of one user, one item of which nobody else has; it has a title and a tag."""
    service.post_all(made_up_events(500))
    service.ask("PUT", f"/v1/items/{ITEM}", {"title": TITLE, "tags": [TAG]})
    service.post_all([{"user": USER, "item": item} for item in (ITEM, "i1", "i2")])


def _killed_before_cleaning(code: Code, store: Path) -> list[str]:
    """Hold a reader, so that the write-ahead log cannot be emptied after the erasure's commit; then kill."""
    with code.serving(store) as service:
        _confide(service)
        with closing(sqlite3.connect(store)) as reader:
            reader.execute("BEGIN").execute("SELECT count(*) FROM users").fetchall()
            service.status("DELETE", f"/v1/users/{USER}")
            service.kill()
    with code.serving(store) as service:
        assert service.get(f"/v1/users/{USER}").status == 404, "the erasure was lost"
        left = _found(store.parent)
        service.kill()
    return left


def _found(folder: Path) -> list[str]:
    """Which secrets are in which files, except in the log of the service itself."""
    files = [file for file in folder.iterdir() if file.is_file()]
    return [f"{secret} in {file.name}" for file in files for secret in SECRETS if secret.encode() in file.read_bytes()]


def replayed(code: Code) -> Finding:
    events, erased = (1_500, 3) if code.quick else (6_000, 10)
    with code.folder() as folder:
        store = folder / "store.sqlite"
        with code.serving(store) as service:
            service.post_all(made_up_events(events, users=USERS))
            before = _tops(service)
            control = _share_equal(code, store, folder / "control.sqlite", before)
            statuses = [service.status("DELETE", f"/v1/users/u{n * 7}") for n in range(erased)]
            rebuilt = _seconds_until_rebuilt(service)
            share = _share_equal(code, store, folder / "new.sqlite", _tops(service))
    return judge(
        (f"{share:.1%} of {USERS} users have the same top 10 after {statuses.count(200)} erasures", share >= 0.99),
        (f"{rebuilt:.0f} s after the last one; {control:.1%} without an erasure", True),
    )


def _seconds_until_rebuilt(service: Service) -> float:
    """How long it took until the state followed from the remaining events alone; code without a rebuild takes none."""
    began = time.monotonic()
    while service.stats().get("rebuilding") and time.monotonic() < began + 120:
        time.sleep(0.5)
    return time.monotonic() - began


def _tops(service: Service) -> dict[str, list[str]]:
    return {f"u{n}": service.top(f"u{n}") for n in range(USERS)}


def _share_equal(code: Code, store: Path, new: Path, tops: dict[str, list[str]]) -> float:
    """The share of users for whom a replay of a store in use recommends the same."""
    done = code.run("replay", store, "pretrained", "--out", new)
    assert done.returncode == 0, done.stderr
    with code.serving(new) as service:
        again = _tops(service)
    return sum(again[user] == top for user, top in tops.items()) / len(tops)


ATTACKS = (
    Attack(
        "erasure-traces",
        "title, tags and ids of what only an erased user had; also killed between commit and clean-up",
        "in no file",
        traces,
    ),
    Attack(
        "erasure-replay",
        "top 10 of the running service after ten erasures against `felrec replay` of its store",
        "equal for ≥ 99 % of users",
        replayed,
    ),
)
