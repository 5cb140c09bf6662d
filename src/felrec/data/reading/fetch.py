"""Download a known dataset: resume interrupted downloads, verify, unpack, and publish only complete files."""

from __future__ import annotations

import errno
import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from felrec.data.reading.archive import unzip
from felrec.data.reading.datasets import DATASETS, Dataset
from felrec.data.reading.sniff import content_of
from felrec.errors import FetchError
from felrec.files import publish

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes received so far and the total bytes, if known."""
Opener: TypeAlias = Callable[[urllib.request.Request], Any]

_CHUNK = 1 << 20
_ATTEMPTS = 3


def open_url(request: urllib.request.Request) -> Any:
    """Open a URL with a timeout."""
    return urllib.request.urlopen(request, timeout=30)


def fetch(
    name: str, to: Path, progress: Progress | None = None, opener: Opener = open_url, sha256: str | None = None
) -> Path:
    """Download dataset `name` into the folder `to/name` and return the path of its log for `read_log`.

    Files that belong to the log are put beside it. An existing file is not downloaded again. An interrupted download is
    resumed by the next call. `sha256` verifies the log against your own checksum.
    """
    if name not in DATASETS:
        raise FetchError(f"unknown dataset {name!r}; use one of {', '.join(DATASETS)}")
    dataset, folder = DATASETS[name], to / name
    log = folder / dataset.file
    if not log.is_file():
        _get(dataset, to, sha256, progress or _silent, opener)
    elif sha256 and not dataset.is_archive and (found := sha256_of(log)) != sha256.lower():
        raise FetchError(f"{log} has the sha256 {found}, not {sha256}; remove it to fetch it again")
    for file, url, its_sha256 in dataset.beside:
        if not (folder / file).is_file():
            _get(replace(dataset, file=file, url=url), to, its_sha256, progress or _silent, opener)
    return log


def _get(dataset: Dataset, to: Path, sha256: str | None, progress: Progress, opener: Opener) -> None:
    """Download the file of a dataset, verify and publish it."""
    folder = to / dataset.name
    by_hand = f"download it manually from {dataset.homepage} and put {dataset.file} into {folder}"
    if dataset.url is None:
        raise FetchError(f"{dataset.name} cannot be fetched; {by_hand}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = to / f"{dataset.name}.part"
        _download(dataset.url, part, progress, opener, by_hand)
        _verify(part, dataset, sha256)
        _install(part, dataset, folder)
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise FetchError(
            f"the disk is full: free space in {to} and run this again" if full else f"{to}: {error}"
        ) from error


def sha256_of(path: Path) -> str:
    """Compute the SHA-256 of a file, to pin a dataset that is published without a checksum."""
    return _digest(path, "sha256")


def _silent(done: int, total: int | None) -> None:
    pass


def _download(url: str, part: Path, progress: Progress, opener: Opener, by_hand: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            if _receive(url, part, progress, opener, by_hand):
                return
            reason = "the connection was interrupted"
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            if isinstance(error, urllib.error.HTTPError):
                raise FetchError(f"{url} answered {error.code} {error.reason}: {by_hand}") from error
            if attempt == _ATTEMPTS or not part.exists():
                raise FetchError(f"could not reach {url} ({reason}): {by_hand}") from error
    raise FetchError(f"{url}: {reason} after {part.stat().st_size:,} bytes; run this again to resume")


def _receive(url: str, part: Path, progress: Progress, opener: Opener, by_hand: str) -> bool:
    """Append the missing bytes to `part`; return whether it is complete."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "felrec", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        response = opener(urllib.request.Request(url, headers=headers))
    except urllib.error.HTTPError as error:
        if not (have and error.code == 416):
            raise
        # The server has no further bytes: the part is complete, or belongs to another version of the file.
        whole = error.headers.get("Content-Range") == f"bytes */{have}"
        if not whole:
            part.unlink()
        return whole
    with response:
        if response.headers.get_content_type() == "text/html":
            raise FetchError(f"{url} sent a web page instead of the file: {by_hand}")
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        return _write(response, part, have if resumed else 0, progress)


def _write(response: Any, part: Path, have: int, progress: Progress) -> bool:
    length = response.headers.get("Content-Length")
    total = None if length is None else have + int(length)
    with part.open("ab" if have else "wb") as file:
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            have += len(chunk)
            progress(have, total)
    return total is None or have >= total


def _verify(part: Path, dataset: Dataset, sha256: str | None) -> None:
    for kind, expected in (("md5", dataset.md5), ("sha256", sha256 or dataset.sha256)):
        if expected and (found := _digest(part, kind)) != expected.lower():
            part.unlink()
            raise FetchError(f"{dataset.name}: the {kind} is {found}, not {expected}; it was removed, run this again")
    with part.open("rb") as file:
        content = content_of(file.read(4096))
    if content != ("a ZIP archive" if dataset.is_archive else "text"):
        part.unlink()
        raise FetchError(f"{dataset.name}: the download is {content} and was removed; get it from {dataset.homepage}")


def _digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _install(part: Path, dataset: Dataset, folder: Path) -> None:
    if not dataset.is_archive:
        folder.mkdir(exist_ok=True)
        publish(part, folder / dataset.file)
        return
    try:
        unzip(part, folder)
    except FetchError:
        part.unlink()  # the next call must not resume from a damaged file
        raise
    part.unlink()
    if not (folder / dataset.file).is_file():
        shutil.rmtree(folder)
        raise FetchError(f"{dataset.name}: the download has no {dataset.file}; see {dataset.homepage}")
