"""What tests of every part share: the real logs, where there are any, and places for stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from places import Place
from postgresql import PostgresServer, running_postgres

_numbers = count()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real logs; tests that need it are skipped where there is none."""
    beside = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    folder = Path(os.environ.get("FELREC_DATA") or beside).resolve()
    if not folder.is_dir():
        pytest.skip(f"no real logs in {folder}; set FELREC_DATA to a folder that has them")
    return folder


@pytest.fixture(scope="session")
def real_log(data_dir: Path) -> Callable[[str], InteractionLog]:
    """Read a real log by name, such as `ml-100k`."""

    def read(name: str) -> InteractionLog:
        path = data_dir / f"{name}.parquet"
        if not path.is_file():
            pytest.skip(f"{path} is missing; set FELREC_DATA to a folder that has it")
        return read_log(path)

    return read


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of these tests alone."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql", "postgresql without notifications"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place for a store of each kind."""
    if request.param == "sqlite":
        place = Place(str(tmp_path / "s"), None)
    else:
        server = request.getfixturevalue("postgres")
        place = Place(server.address(), f"n{next(_numbers)}", listen=request.param == "postgresql")
    yield place
    place.close()
