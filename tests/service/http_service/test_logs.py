"""Logging never blocks those who log: not when nobody reads the log, and not at the end."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from felrec.service.http.logs import BackgroundLines, JsonLines
from http_service.running import ENVIRONMENT, Opened, command
from http_service.test_api_status import metrics

LINES = 1_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, BackgroundLines, logging.Logger]]:
    """The end of a pipe to read from, what writes to the other end, and its logger."""
    reading, writing = os.pipe()
    handler = BackgroundLines(writing, capacity=20)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("felrec.test_logs")
    logger.propagate = False
    logger.addHandler(handler)
    yield reading, handler, logger
    logger.removeHandler(handler)
    os.close(reading)  # a thread that is still writing goes on
    handler.close()
    os.close(writing)


def fill(logger: logging.Logger) -> None:
    for number in range(LINES):
        logger.warning("line %d %s", number, "x" * 300)


def test_what_nobody_reads_is_dropped_and_counted(pipe: tuple[int, BackgroundLines, logging.Logger]) -> None:
    reading, handler, logger = pipe
    fill(logger)
    assert handler.dropped > LINES // 2
    with os.fdopen(os.dup(reading)) as log:
        lines: list[Any] = []
        while sum(line.get("lines", 1) for line in lines) < LINES:  # each was written, or counted
            lines.append(json.loads(log.readline()))
    told = [line for line in lines if "lines" in line]
    assert {(line["level"], line["message"][:17]) for line in told} == {("warning", "log lines dropped")}
    assert sum(line["lines"] for line in told) == handler.dropped
    assert lines[0]["message"].startswith("line 0 ")


def test_the_end_does_not_wait_for_a_reader(pipe: tuple[int, BackgroundLines, logging.Logger]) -> None:
    _, handler, logger = pipe
    fill(logger)
    handler.close()  # returns


def test_dropped_lines_are_a_metric(service: Opened, pipe: tuple[int, BackgroundLines, logging.Logger]) -> None:
    _, handler, logger = pipe
    fill(logger)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        assert metrics(service)["felrec_dropped_log_lines_total"] >= handler.dropped > 0
    finally:
        root.removeHandler(handler)


def test_a_service_whose_log_is_not_read_answers_and_stops(run: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("serve", run, "--store", tmp_path / "s", "--port", 0),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = process.stdout.readline().split()[2]
        with httpx.Client(base_url=url, timeout=20) as client:
            for _ in range(1_000):
                assert client.get("/v1/stats").status_code == 200
            assert client.get("/healthz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert json.loads(process.stderr.readline())["message"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
