"""Disks that are full (a small tmpfs, which only root can mount) or read-only."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attacks.load import made_up_events
from attacks.target import Code, DidNotStart, Service
from attacks.verdict import Attack, Finding, NotTestedHere, judge

SIZE = 16 * 2**20
READ = "/v1/users/u1/recommendations"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "felrec-attack", str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotTestedHere("there is no mount") from None
    if done.returncode:
        raise NotTestedHere(f"no right to mount a tmpfs ({done.stderr.strip()})")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)


def fill(disk: Path) -> Path:
    """Use up the room of a disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        for _ in range(SIZE // 512 + 1):
            file.write(b"\0" * 512)
    return filler


def _post(service: Service, count: int = 200) -> int:
    return service.post([{"user": f"n{n}", "item": f"n{n}"} for n in range(count)]).status


def _post_soon(service: Service) -> int:
    """The status of a post; the service may take some seconds to notice that there is room."""
    for _ in range(10):
        if (status := _post(service)) == 200:
            break
        time.sleep(0.5)
    return status


def full_start(code: Code) -> Finding:
    with code.folder() as folder, small_disk(folder) as disk:
        store = disk / "store.sqlite"
        with code.serving(store) as service:
            service.post_all(made_up_events(1_000))
            service.kill()
        store.with_name("store.sqlite.log").unlink()
        filler = fill(disk)
        try:
            with code.serving(store, stderr=subprocess.DEVNULL) as service:
                full = [service.status("GET", READ), _post(service)]
                filler.unlink()
                free = [service.status("GET", READ), _post_soon(service)]
        except DidNotStart:
            return judge(("does not start", False))
    return judge(
        (f"full: reading {full[0]}, a post {full[1]}", full == [200, 507]),
        (f"with room: reading {free[0]}, a post {free[1]}", free == [200, 200]),
    )


def full_while_running(code: Code) -> Finding:
    with code.folder() as folder, small_disk(folder) as disk:
        with code.serving(disk / "store.sqlite", stderr=subprocess.DEVNULL) as service:
            service.post_all(made_up_events(1_000))
            acknowledged = service.stats()["events"]
            filler = fill(disk)
            for _ in range(50):  # a file that is already there may have room
                if (status := _post(service)) != 200:
                    break
                acknowledged += 200
            read = service.status("GET", READ)
            filler.unlink()
            again = _post(service)
            acknowledged += 200 if again == 200 else 0
            service.kill()
        with code.serving(disk / "store.sqlite", stderr=subprocess.DEVNULL) as service:
            events = service.stats()["events"]
    return judge(
        (f"full: a post {status}, reading {read}", (status, read) == (507, 200)),
        (f"with room {again}", again == 200),
        (f"{acknowledged:,} events acknowledged, {events:,} after kill -9", events == acknowledged),
    )


def read_only(code: Code) -> Finding:
    """A file system that turned read-only after an error: here by the immutable flag, which needs ext4 and root."""
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        service.post_all(made_up_events(1_000))
        files = [str(file) for file in folder.glob("store.sqlite*") if not file.name.endswith(("-shm", ".log"))]
        try:
            if subprocess.run(["chattr", "+i", *files], capture_output=True).returncode:
                raise NotTestedHere("no right, or no file system, to make files immutable")
            status, read, alive = _post(service), service.status("GET", READ), service.status("GET", "/healthz")
        finally:
            subprocess.run(["chattr", "-i", *files], capture_output=True)
        again = _post(service)
    return judge(
        (
            f"read-only: a post {status}, reading {read}, /healthz {alive}",
            status in (503, 507) and read == alive == 200,
        ),
        (f"writable again: a post {again}", again == 200),
    )


ATTACKS = (
    Attack(
        "full-disk-start",
        "start on a full disk",
        "reads work, posts 507, and posts work once there is room",
        full_start,
    ),
    Attack(
        "full-disk-running",
        "the disk fills while the service runs",
        "507, reads work, nothing acknowledged is lost",
        full_while_running,
    ),
    Attack(
        "read-only-disk",
        "the store's files become read-only and writable again",
        "503 or 507, reads work, recovers",
        read_only,
    ),
)
