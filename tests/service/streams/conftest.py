from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import needs

needs.package("redis")
needs.package("confluent_kafka")

from redis_server import RedisServer  # noqa: E402


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    directory = tmp_path / "redis"
    directory.mkdir()
    server = RedisServer(directory)
    yield server
    server.close()
