"""Attacks on the files of a store by a local user, a careless operator, or a failing disk."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attacks.load import made_up_events
from attacks.target import Code, DidNotStart, end
from attacks.verdict import Attack, Finding, judge

NOTICED = 1.0  # seconds
LOG = "write-ahead log"


def replaced(code: Code) -> Finding:
    """The store's file goes away under a running service, in several ways."""
    ways: dict[str, Callable[[Path], object]] = {
        "removed": lambda store: store.unlink(),
        "replaced": lambda store: os.replace(shutil.copyfile(store, store.with_name("copy")), store),
        "moved": lambda store: store.rename(store.with_name("elsewhere")),
    }
    checks = [_after(code, what, ways[what]) for what in ([*ways][:2] if code.quick else ways)]
    return judge(*(check for pair in checks for check in pair))


def _after(code: Code, what: str, way: Callable[[Path], object]) -> list[tuple[str, bool]]:
    with code.folder() as folder:
        store = folder / "store.sqlite"
        with code.serving(store) as service:
            service.post_all(made_up_events(300))
            way(store)
            time.sleep(NOTICED)
            status = service.status("POST", "/v1/interactions", {"user": "u1", "item": "after"})
            ready, read = service.status("GET", "/readyz"), service.status("GET", "/v1/users/u1/recommendations")
    return [
        (f"{what}: a post {status}", status in (503, 507)),
        (f"/readyz {ready}, reading {read}", ready == 503 and read in (200, 503)),
    ]


def second_engine(code: Code) -> Finding:
    """A second service on the same data, by another name of the file or without the lease file."""
    ways: dict[str, Callable[[Path], Path]] = {
        "same path": lambda store: store,
        "symbolic link": _linked(os.symlink),
        "hard link": _linked(os.link),
        "lease file removed": _without_lease,
    }
    checks = []
    for what in ("symbolic link", "lease file removed") if code.quick else ways:
        with code.folder() as folder:
            store = folder / "store.sqlite"
            with code.serving(store) as service:
                service.post_all(made_up_events(300))
                refused = not _starts(code, ways[what](store))
        checks.append((f"{what}: {'refused' if refused else 'a second engine started'}", refused))
    return judge(*checks)


def _linked(link: Callable[[Path, Path], object]) -> Callable[[Path], Path]:
    def made(store: Path) -> Path:
        other = store.with_name("other") / "store.sqlite"
        other.parent.mkdir()
        link(store, other)
        return other

    return made


def _without_lease(store: Path) -> Path:
    for lease in store.parent.glob("*lease*"):
        lease.unlink()
    return store


def _starts(code: Code, store: Path) -> bool:
    try:
        with code.serving(store):
            return True
    except DidNotStart:
        return False


@dataclass(frozen=True)
class Damage:
    """What became of a store whose write-ahead log was damaged."""

    acknowledged: int
    left: int | None  # events after the next start; None if it is refused
    verify_says: bool
    start_says: bool


def flipped_byte(code: Code) -> Finding:
    def flip(log: Path) -> None:
        content = bytearray(log.read_bytes())
        content[len(content) // 2] ^= 0xFF
        log.write_bytes(content)

    damage = _damaged_log(code, flip)
    return judge(
        (f"verify {'says it' if damage.verify_says else 'finds no problem'}", damage.verify_says),
        (f"the start {'says it' if damage.start_says else 'says nothing'}", damage.start_says),
        (_left(damage), True),
    )


def cut_log(code: Code) -> Finding:
    """What a power cut leaves behind if the disk did not sync: the end of the write-ahead log is missing."""
    damage = _damaged_log(code, lambda log: os.truncate(log, log.stat().st_size // 2))
    return judge((_left(damage), damage.left is None or 0 < damage.left < damage.acknowledged))


def _left(damage: Damage) -> str:
    if damage.left is None:
        return "refused to start"
    return f"{damage.left} of {damage.acknowledged} acknowledged events are there"


def _damaged_log(code: Code, damage: Callable[[Path], None]) -> Damage:
    """Damage the write-ahead log of a killed service."""
    with code.folder() as folder:
        store, log = folder / "store.sqlite", folder / "store.sqlite.log"
        with code.serving(store) as service:
            for row in made_up_events(60):
                service.post([row])
            acknowledged = service.stats()["events"]
            service.kill()
        damage(store.with_name("store.sqlite-wal"))
        checked = code.run("verify", store)
        verify_says = checked.returncode != 0 or LOG in checked.stdout + checked.stderr
        log.write_text("")
        left = None
        with suppress(DidNotStart), code.serving(store) as service:
            left = service.stats()["events"]
        return Damage(acknowledged, left, verify_says, left is None or LOG in log.read_text())


def truncated(code: Code) -> Finding:
    with code.folder() as folder:
        store = folder / "store.sqlite"
        with code.serving(store) as service:
            service.post_all(made_up_events(2_000))
            service.stop()
        os.truncate(store, store.stat().st_size // 2)
        verify = code.run("verify", store).returncode
        starts = _starts(code, store)
    return judge(
        (f"verify exits with {verify}", verify == 2), ("refused to start" if not starts else "started", not starts)
    )


def killed_backup(code: Code) -> Finding:
    unit = (code.src.parent / "deploy" / "felrec-backup.service").read_text()
    patterns = re.findall(r"-name '([^']+)'", unit)
    with code.folder() as folder:
        store, backups = folder / "store.sqlite", folder / "backup"
        backups.mkdir()
        with code.serving(store) as service:
            service.post_all(made_up_events(2_000 if code.quick else 10_000, users=3_000, items=2_000))
            service.stop()
        left = _kill_backup(code, store, backups)
        unmatched = [name for name in left if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
        code.run("backup", store, backups / "store-20260102T000000Z.sqlite")
        still = [name for name in left if (backups / name).exists()]
    return judge(
        (f"left: {', '.join(left) or 'nothing'}", bool(left)),
        (f"not matched by the timer's expiry: {', '.join(unmatched) or 'none'}", not unmatched),
        (f"there after the next run: {', '.join(still) or 'none'}", not still),
    )


def _kill_backup(code: Code, store: Path, backups: Path) -> list[str]:
    """Kill a backup as soon as its copy has a size; the files it leaves."""
    for number in range(10):
        process = subprocess.Popen(
            code.command("backup", store, backups / f"store-2026010{number}T000000Z.sqlite"),
            env=code.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if any(file.stat().st_size for file in backups.iterdir()):
                process.send_signal(signal.SIGKILL)
                break
        end(process)
        left = sorted(file.name for file in backups.iterdir())
        if left and process.returncode == -signal.SIGKILL:
            return left
        for file in backups.iterdir():
            file.unlink()
    return []


ATTACKS = (
    Attack(
        "store-replaced",
        "the store's file removed, replaced or moved under a running service",
        f"noticed within {NOTICED:.0f} s: no acknowledgement, /readyz 503",
        replaced,
    ),
    Attack("second-engine", "a second service by a link, or without the lease file", "refused", second_engine),
    Attack(
        "wal-flip",
        "one flipped byte in the write-ahead log after kill -9",
        "said by the start and by verify",
        flipped_byte,
    ),
    Attack(
        "wal-cut",
        "half of the write-ahead log is missing after kill -9",
        "its first half is there, or refused",
        cut_log,
    ),
    Attack("truncated", "half of the store's file is missing", "refused by verify and serve", truncated),
    Attack(
        "backup-killed",
        "a backup that is killed",
        "its leftover is matched by the timer's expiry and removed by the next run",
        killed_backup,
    ),
)
