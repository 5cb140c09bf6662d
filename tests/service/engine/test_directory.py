"""Ids and rows while several threads look."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from felrec.service.engine.directory import Directory


def test_whoever_searches_while_another_thread_sorts_finds_everything() -> None:
    names = [f"{n * 7919 % 60_000:05}" for n in range(60_000)]
    for _ in range(3):
        directory = Directory(names)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(directory.starting, ["5999"] * 8, [20] * 8, timeout=60))
        assert found == [[f"{n}" for n in range(59_990, 60_000)]] * 8
