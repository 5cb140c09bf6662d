"""Whether it is alive, whether it is ready, and its numbers."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import fields
from pathlib import Path

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from felrec.answers.types import Alive, EngineStats, Stats
from felrec.service.http.access import service_of
from felrec.service.http.middleware import retry_after
from felrec.service.http.problems import Problem
from felrec.service.http.responses import json_response

router = APIRouter(tags=["status"])


@router.get("/healthz", responses={200: {"model": Alive}})
async def healthz() -> Response:
    """Alive: the process answers. Restart it if it does not."""
    return json_response(Alive("alive"))


@router.get("/readyz", responses={200: {"model": Alive}})
async def readyz(request: Request) -> Response:
    """Ready: it takes requests. A balancer sends none while it is not."""
    service = service_of(request)
    if not service.health().ready:
        why = "it is stopping" if service.stopping else "it must be restarted, its log says why"
        raise Problem(503, f"not ready: {why}", retry_after(5))
    return json_response(Alive("ready"))


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}, "description": "for Prometheus"}})
def metrics(request: Request) -> Response:
    """The numbers for Prometheus."""
    return Response(service_of(request).metrics.exposition(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/v1/stats", responses={200: {"model": Stats}})
def stats(request: Request) -> Response:
    """The numbers for people: the engine, recent rates and latencies, memory, and how even recommendations are."""
    service = service_of(request)
    health = service.health()
    numbers = {one.name: getattr(health, one.name) for one in fields(EngineStats)}
    return json_response(
        Stats(
            **numbers,
            uptime_seconds=round(time.time() - health.started, 1),
            events_per_second=service.metrics.events_per_second(),
            latencies=service.metrics.latencies(),
            memory_bytes=memory_bytes(),
            bias=service.engine.bias(),
        )
    )


def memory_bytes() -> int:
    """Resident memory of this process; where the system does not tell, the most it ever was."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
