"""Attacks on memory with a write key: titles that grow when they are folded, new ids without end."""

from __future__ import annotations

import json
import sqlite3
import zlib
from pathlib import Path

from attacks.target import MEGABYTE, Code, DidNotStart, Service
from attacks.verdict import Attack, Finding, judge

LIGATURE = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"  # three bytes that fold to eighteen characters
TITLES, LENGTH = 29, 1_000
NOISE = 16.0  # megabytes
LIMIT = 1_800_000_000  # bytes of data and heap, by RLIMIT_DATA: torch reserves far more addresses than it uses


def titles(code: Code) -> Finding:
    title = LIGATURE * LENGTH
    sent = TITLES * len(title.encode()) / MEGABYTE
    with code.folder() as folder:
        with code.serving(folder / "store.sqlite") as service:
            service.status("PUT", "/v1/items/first", {"title": "warm up"})
            before = service.memory()
            statuses = [service.status("PUT", f"/v1/items/t{n}", {"title": title}) for n in range(TITLES)]
            growth = service.peak() - before
        opened, peak = _poisoned(code, folder / "poisoned.sqlite")
    return judge(
        (f"{sent * 1_000:.0f} kB of titles: memory + {growth:,.0f} MB", growth <= 20 * sent + NOISE),
        (f"statuses {sorted(set(statuses))}", set(statuses) <= {200, 422}),
        (f"a store that holds them {opened}", peak is not None),
    )


def _poisoned(code: Code, store: Path) -> tuple[str, float | None]:
    """Open a store with such titles, whatever titles the service accepts now, with little memory."""
    with code.serving(store) as service:
        for n in range(TITLES):
            service.ask("PUT", f"/v1/items/t{n}", {"title": "x"})
        service.stop()
    with sqlite3.connect(store) as file:
        for item, value in file.execute("SELECT id, value FROM attributes").fetchall():
            said = json.dumps({**json.loads(value), "title": LIGATURE * LENGTH}, sort_keys=True, separators=(",", ":"))
            crc = zlib.crc32(said.encode(), zlib.crc32(item.encode()))
            file.execute("UPDATE attributes SET value = ?, crc = ? WHERE id = ?", (said, crc, item))
    file.close()
    try:
        with code.serving(store, data_bytes=LIMIT) as service:
            found = service.get("/v1/items/t0").status
            return (
                f"opens under {LIMIT / 1e9:.1f} GB ({service.peak():.0f} MB)",
                service.peak() if found == 200 else None,
            )
    except DidNotStart as error:
        return f"does not open under {LIMIT / 1e9:.1f} GB ({str(error)[-60:]})", None


def new_ids(code: Code) -> Finding:
    count = 500 if code.quick else 20_000
    with code.folder() as folder:
        with code.serving(folder / "store.sqlite") as service:
            service.post_all([{"user": f"u{n}", "item": f"i{n}"} for n in range(100)])
            users = _bytes_each(service, [{"user": f"new{n}", "item": f"i{n % 100}"} for n in range(count)])
            items = _bytes_each(service, [{"user": f"u{n % 100}", "item": f"new{n}"} for n in range(count)])
        grown = f"{users:,.0f} bytes a user, {items:,.0f} bytes an item while growing"
        if not code.serves("--max-items"):
            return Finding(f"{grown}; no --max-items, so nothing bounds it", False)
        with code.serving(folder / "bound.sqlite", "--max-items", 50, "--max-users", 50) as service:
            return judge((grown, True), *_bounded(service))


def _bytes_each(service: Service, rows: list[dict[str, object]]) -> float:
    before = service.memory()
    service.post_all(rows)
    return (service.memory() - before) * MEGABYTE / len(rows)


def _bounded(service: Service) -> list[tuple[str, bool]]:
    service.post_all([{"user": f"u{n}", "item": f"i{n}"} for n in range(50)])
    for n in range(50):
        service.ask("PUT", f"/v1/items/i{n}", {"title": "known"})
    item = service.post([{"user": "u1", "item": "new"}]).status
    user = service.post([{"user": "new", "item": "i1"}]).status
    put = service.status("PUT", "/v1/items/new", {"title": "new"})
    old = service.post([{"user": "u1", "item": "i2"}]).status
    asked = service.get("/v1/users/new/recommendations").status
    return [
        (f"beyond --max-items {item}, --max-users {user}, a PUT {put}", (item, user, put) == (507, 507, 507)),
        (f"known ids {old}, reading {asked}", (old, asked) == (200, 200)),
    ]


ATTACKS = (
    Attack(
        "titles",
        f"{TITLES} titles of {LENGTH:,} × U+FDFA; and a store that already holds them",
        f"memory ≤ 20 × the bytes sent (+ {NOISE:.0f} MB of noise), opens under {LIMIT / 1e9:.1f} GB",
        titles,
        240,
    ),
    Attack(
        "state-bound",
        "new users and items without end, with a write key",
        "507 beyond --max-items and --max-users, known ids go on",
        new_ids,
        300,
    ),
)
