"""What is open, unprotected or missing before a service starts. Looking changes nothing on disk."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from felrec import runs
from felrec.errors import FelrecError
from felrec.fitted import FittedModel
from felrec.service.engine.identity import check_identity
from felrec.service.http.audit import key_file
from felrec.service.http.keys import SCOPES, KeyFile
from felrec.service.http.listening import OWN_FILES, check_access, is_local, listen
from felrec.store.glance import glance

State = Literal["ok", "warning", "error"]
LEAST_SPACE = 64 * 2**20  # bytes; the write-ahead log alone may take as much
SPACE = 2**30  # bytes, for new events and a second copy of the store
RELEASED = 1_767_225_600  # 2026-01-01: no correct clock is before that


@dataclass(frozen=True)
class Start:
    """How a service is to be started."""

    run: Path
    store: Path
    host: str
    port: int
    keys: KeyFile | None = None
    audit: Path | None = None
    connections: int = 1_000  # at the same time


@dataclass(frozen=True)
class Finding:
    """The result of one check; `details` say what was found and, unless it is fine, what to do."""

    what: str
    state: State
    details: str


Findings = Iterator[Finding]


def check_start(start: Start) -> list[Finding]:
    """All findings. A service with an error would not start, or could not work."""
    model, loaded = _load(start.run)
    checks: tuple[Callable[[Start], Findings], ...] = (_directory, _space, _keys, _address, _audit, _open_files, _clock)
    return [loaded, *_store(start.store, model), *(finding for check in checks for finding in check(start))]


def _load(run: Path) -> tuple[FittedModel | None, Finding]:
    try:
        model = runs.load(run)
    except (FelrecError, OSError) as error:
        return None, Finding("run", "error", str(error))
    return model, Finding("run", "ok", f"{run}: {model.name}")


def _store(store: Path, model: FittedModel | None) -> Findings:
    if not store.exists():
        yield Finding("store", "ok", f"{store} does not exist yet; the service creates it")
        return
    try:
        seen = glance(store)
        if seen.identity and model:
            check_identity(str(store), seen.identity, model)
    except FelrecError as error:
        yield Finding("store", "error", str(error))
        return
    if seen.in_use:
        yield Finding("store", "error", f"{store} is in use by another engine; stop it first")
    elif seen.identity is None:
        yield Finding("store", "ok", f"{store} was not closed, or is empty; the service continues from there")
    else:
        yield Finding("store", "ok", f"{store} belongs to {seen.identity.model}")
    yield from _private("store file", store)


def _directory(start: Start) -> Findings:
    directory = start.store.absolute().parent
    if not directory.is_dir():
        yield Finding("directory", "error", f"{directory} does not exist; create it, or choose another --store")
    elif not os.access(directory, os.W_OK | os.X_OK):
        yield Finding("directory", "error", f"{directory} cannot be written; run chown or choose another --store")
    elif directory.stat().st_mode & stat.S_IWOTH and not directory.stat().st_mode & stat.S_ISVTX:
        yield Finding("directory", "warning", f"every user can replace files in {directory}; run chmod o-w {directory}")
    else:
        yield Finding("directory", "ok", f"{directory} can be written")


def _space(start: Start) -> Findings:
    directory = start.store.absolute().parent
    if not directory.is_dir():
        return
    free = shutil.disk_usage(directory).free
    size = start.store.stat().st_size if start.store.exists() else 0
    details = f"{free / 2**30:,.1f} GiB free for a store of {size / 2**20:,.0f} MiB"
    if free < LEAST_SPACE:
        yield Finding("disk space", "error", f"{details}; free some space")
    elif free < size + SPACE:
        yield Finding("disk space", "warning", f"{details}, too little to grow or to copy it; free some space")
    else:
        yield Finding("disk space", "ok", details)


def _keys(start: Start) -> Findings:
    try:
        check_access(start.host, start.keys)
        entries = start.keys.entries() if start.keys else []
    except FelrecError as error:
        yield Finding("keys", "error", str(error))
        return
    if start.keys is None:
        open_to = "every user and program of this machine may read, write and erase"
        yield Finding("keys", "warning", f"none: {open_to}; create keys with felrec keys add and give --keys FILE")
        return
    path = start.keys.path
    for scope in SCOPES:
        if not any(scope in key.scopes for key in entries):
            add = f"felrec keys add --scope {scope} --keys {path}"
            yield Finding("keys", "warning", f"no key may {scope}; create one with {add}")
    limited = sum(key.requests_per_second is not None or key.events_per_second is not None for key in entries)
    yield Finding("keys", "ok", f"{len(entries)} in {path}, {limited} with rate limits")
    yield from _private("keys file", path)


def _address(start: Start) -> Findings:
    try:
        listen(start.host, start.port).close()
    except FelrecError as error:
        yield Finding("address", "error", str(error))
        return
    address = f"{start.host}:{start.port}"
    if is_local(start.host):
        yield Finding("address", "ok", f"{address} can be reached from this machine only")
    else:
        without = "keys and events travel unencrypted unless a proxy with TLS is in front"
        yield Finding("address", "warning", f"{address} can be reached from other machines: {without}")


def _audit(start: Start) -> Findings:
    if start.audit is None:
        yield Finding("audit log", "ok", "none: writes and erasures are not recorded; give --audit FILE to record them")
        return
    file, directory = start.audit, start.audit.absolute().parent
    if file.is_dir() or not os.access(file if file.exists() else directory, os.W_OK):
        yield Finding("audit log", "error", f"{file} cannot be written; check the path and its permissions")
        return
    yield Finding("audit log", "ok", str(file))
    for name, path in (("audit log", file), ("audit key", key_file(start.store))):
        if path.exists():
            yield from _private(name, path)


def _open_files(start: Start) -> Findings:
    allowed, needed = resource.getrlimit(resource.RLIMIT_NOFILE)[1], start.connections + OWN_FILES
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        yield Finding("open files", "ok", f"{needed:,} needed for {start.connections:,} connections")
    else:
        details = f"{needed:,} needed for {start.connections:,} connections, {allowed:,} allowed"
        yield Finding("open files", "error", f"{details}; raise the limit (ulimit -Hn, LimitNOFILE in systemd)")


def _clock(start: Start) -> Findings:
    now, files = time.time(), [start.store, *([start.keys.path] if start.keys else [])]
    newest = max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < max(RELEASED, newest - 60):
        yield Finding("clock", "error", f"{shown} is in the past of the files of this service; set the clock")
    else:
        yield Finding("clock", "ok", shown)


def _private(what: str, path: Path) -> Findings:
    """Whether other users can read or change a file; nothing if they cannot."""
    mode = path.stat().st_mode
    if mode & 0o022:
        yield Finding(what, "error", f"other users can change {path}; run chmod 600 {path}")
    elif mode & 0o044:
        yield Finding(what, "warning", f"other users can read {path}; run chmod 600 {path}")
