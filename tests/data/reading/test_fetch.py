from __future__ import annotations

import hashlib
import io
import re
import shutil
import socket
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from felrec.data.reading.datasets import DATASETS, Companion
from felrec.data.reading.fetch import fetch, sha256_of
from felrec.data.reading.sources import read_log
from felrec.errors import FetchError

JODIE = b"user_id,item_id,timestamp,state_label,features\n" + b"".join(
    b"%d,%d,%d,0,0.5\n" % (n % 7, n % 5, n) for n in range(200_000)
)


@dataclass
class Site:
    """A server on this machine: what it holds, and how it misbehaves."""

    content: bytes = JODIE
    ranges: bool = True
    break_after: list[int] = field(default_factory=list)  # bytes sent by each answer before it breaks off
    kind: str = "text/csv"
    status: int = 200
    asked: list[str | None] = field(default_factory=list)  # the Range of each request
    url: str = ""


def answer(site: Site, request: BaseHTTPRequestHandler) -> None:
    wanted = request.headers.get("Range")
    site.asked.append(wanted)
    start = int(re.findall(r"\d+", wanted)[0]) if wanted and site.ranges else 0
    size = len(site.content)
    if start >= size > 0:
        request.send_response(416)
        request.send_header("Content-Range", f"bytes */{size}")
        request.send_header("Content-Length", "0")
        request.end_headers()
        return
    request.send_response(206 if start else site.status)
    if start:
        request.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
    request.send_header("Content-Type", site.kind)
    request.send_header("Content-Length", str(size - start))
    request.end_headers()
    stop = start + site.break_after.pop(0) if site.break_after else size
    request.wfile.write(site.content[start:stop])


@pytest.fixture
def site() -> Iterator[Site]:
    served = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(served, self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def known(site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Let a dataset come from the site instead."""

    def change(name: str = "jodie-wikipedia", file: str = "wikipedia.csv", **changes: Any) -> str:
        dataset = replace(DATASETS[name], url=f"{site.url}/{file}", **changes)
        monkeypatch.setitem(DATASETS, name, dataset)
        return name

    return change


def zipped(**members: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return packed.getvalue()


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_arrives_whole_and_only_once(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    path = fetch(known(), tmp_path / "new" / "data", lambda done, total: steps.append((done, total)))
    assert path == tmp_path / "new" / "data" / "jodie-wikipedia" / "wikipedia.csv"
    assert path.read_bytes() == JODIE
    assert steps[-1] == (len(JODIE), len(JODIE))
    assert len(steps) > 2
    assert sha256_of(path) == hashlib.sha256(JODIE).hexdigest()
    assert fetch("jodie-wikipedia", tmp_path / "new" / "data") == path
    assert len(site.asked) == 1
    assert left_in(path.parent.parent) == {"jodie-wikipedia"}
    assert read_log(path).n_users == 7


def test_a_broken_connection_is_resumed(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.break_after = [1_000_000, 300_000]
    path = fetch(known(md5=hashlib.md5(JODIE).hexdigest()), tmp_path)
    assert path.read_bytes() == JODIE
    assert site.asked == [None, "bytes=1000000-", "bytes=1300000-"]


def test_a_later_call_goes_on_from_what_is_there(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.break_after = [1_000, 1_000, 1_000]
    with pytest.raises(FetchError, match="interrupted after 3,000 bytes; run this again"):
        fetch(known(), tmp_path)
    assert left_in(tmp_path) == {"jodie-wikipedia.part"}
    assert fetch("jodie-wikipedia", tmp_path).read_bytes() == JODIE
    assert site.asked[-1] == "bytes=3000-"


def test_a_server_without_ranges_starts_anew(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.ranges = False
    site.break_after = [1_000_000]
    assert fetch(known(), tmp_path).read_bytes() == JODIE
    assert site.asked == [None, "bytes=1000000-"]


def test_a_part_that_is_whole_already_is_used(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "jodie-wikipedia.part").write_bytes(JODIE)
    assert fetch(known(), tmp_path).read_bytes() == JODIE


def test_a_part_of_another_version_is_dropped(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "jodie-wikipedia.part").write_bytes(JODIE + b"more")
    assert fetch(known(), tmp_path).read_bytes() == JODIE


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_wrong_checksum_leaves_nothing(site: Site, known: Callable[..., str], tmp_path: Path, kind: str) -> None:
    with pytest.raises(FetchError, match=f"the {kind} is .*, not 00"):
        fetch(known(**{kind: "00"}), tmp_path)
    assert left_in(tmp_path) == set()


def test_a_sum_of_ones_own_is_checked(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    name = known()
    with pytest.raises(FetchError, match="sha256"):
        fetch(name, tmp_path, sha256="ab")
    assert fetch(name, tmp_path, sha256=hashlib.sha256(JODIE).hexdigest().upper()).is_file()


def test_an_archive_is_unpacked_without_its_top_folder(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.content = zipped(**{"ml-10M100K__ratings.dat": "1::2::5::10\n2::3::4::11\n", "ml-10M100K__README": "x"})
    path = fetch(known("ml-10m", "ml-10m.zip", md5=hashlib.md5(site.content).hexdigest()), tmp_path)
    assert path == tmp_path / "ml-10m" / "ratings.dat"
    assert left_in(tmp_path) == {"ml-10m"}
    assert len(read_log(tmp_path / "ml-10m")) == 2


@pytest.mark.parametrize("member", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt"])
def test_an_archive_cannot_write_outside(site: Site, known: Callable[..., str], tmp_path: Path, member: str) -> None:
    site.content = zipped(**{member: "x"})
    with pytest.raises(FetchError, match="points outside its folder"):
        fetch(known("ml-1m", "ml-1m.zip", md5=None), tmp_path / "data")
    assert left_in(tmp_path / "data") == set()
    assert not list(tmp_path.rglob("evil*"))


def test_a_damaged_archive_is_refused(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.content = zipped(**{"ml-1m__ratings.dat": "1::2::5::10\n"})[:-30]
    with pytest.raises(FetchError, match="damaged ZIP archive"):
        fetch(known("ml-1m", "ml-1m.zip", md5=None), tmp_path)
    assert left_in(tmp_path) == set()


def test_an_archive_without_the_log_is_refused(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.content = zipped(**{"ml-1m__README": "x"})
    with pytest.raises(FetchError, match=r"the download has no ratings\.dat"):
        fetch(known("ml-1m", "ml-1m.zip", md5=None), tmp_path)
    assert left_in(tmp_path) == set()


def test_an_archive_that_does_not_fit_is_kept_for_later(
    site: Site, known: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.content = zipped(**{"ml-1m__ratings.dat": "1::2::5::10\n"})
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1))
    with pytest.raises(FetchError, match="the disk is full: free space in"):
        fetch(known("ml-1m", "ml-1m.zip", md5=None), tmp_path)
    assert left_in(tmp_path) == {"ml-1m.part"}


def test_a_web_page_is_not_a_dataset(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    name = known()
    site.content = b"<html>quota exceeded</html>"
    with pytest.raises(FetchError, match="the download is an HTML page"):
        fetch(name, tmp_path)
    site.kind = "text/html; charset=utf-8"
    with pytest.raises(FetchError, match=r"sent a web page .* download it manually from https://snap"):
        fetch(name, tmp_path)
    assert left_in(tmp_path) == set()


def test_not_found(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    site.status = 404
    with pytest.raises(FetchError, match="answered 404 Not Found: download it manually"):
        fetch(known(), tmp_path)


def test_offline(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    dataset = replace(DATASETS["jodie-mooc"], url=f"http://127.0.0.1:{port}/mooc.csv")
    monkeypatch.setitem(DATASETS, "jodie-mooc", dataset)
    expected = rf"could not reach http://127.0.0.1:{port}/mooc.csv \(.*\): download it manually from https://snap.*"
    with pytest.raises(FetchError, match=expected) as error:
        fetch("jodie-mooc", tmp_path)
    assert str(error.value).endswith(f"and put mooc.csv into {tmp_path / 'jodie-mooc'}")
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk(site: Site, known: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "jodie-wikipedia.part").symlink_to("/dev/full")
    with pytest.raises(FetchError, match="the disk is full: free space in"):
        fetch(known(), tmp_path)


def test_what_must_be_placed_by_hand_says_so_and_is_then_found(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"twitch-full cannot be fetched; download it manually .* full_a\.csv\.gz"):
        fetch("twitch-full", tmp_path)
    (tmp_path / "twitch-full").mkdir()
    (tmp_path / "twitch-full" / "full_a.csv.gz").write_bytes(b"x")
    assert fetch("twitch-full", tmp_path).is_file()


def test_unknown_names_list_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="unknown dataset 'ml-3m'; use one of ml-100k, ml-1m"):
        fetch("ml-3m", tmp_path)


def test_a_file_that_is_there_is_checked_against_ones_own_sum(
    site: Site, known: Callable[..., str], tmp_path: Path
) -> None:
    name = known()
    log = fetch(name, tmp_path)
    assert fetch(name, tmp_path, sha256=sha256_of(log).upper()) == log
    with pytest.raises(FetchError, match="remove it to fetch it again"):
        fetch(name, tmp_path, sha256="0" * 64)
    assert log.is_file()


def test_files_that_belong_to_a_log_are_put_beside_it(
    site: Site, known: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = known()
    of_titles = Companion("titles.csv", f"{site.url}/titles.csv", hashlib.sha256(JODIE).hexdigest())
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], beside=(of_titles,)))
    log = fetch(name, tmp_path)
    assert log.with_name("titles.csv").read_bytes() == JODIE
    asked = len(site.asked)
    fetch(name, tmp_path)
    assert len(site.asked) == asked  # both are there
    log.with_name("titles.csv").unlink()
    site.content = b"something,else\n1,2\n"
    with pytest.raises(FetchError, match="the sha256 is"):
        fetch(name, tmp_path)
    assert not log.with_name("titles.csv").exists()
