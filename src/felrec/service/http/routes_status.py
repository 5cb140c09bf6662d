"""Whether it is alive, whether it is ready, and its numbers."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from felrec.service.http.access import service_of
from felrec.service.http.middleware import retry_after
from felrec.service.http.problems import Problem, json_response
from felrec.service.http.schemas import Alive, Stats

router = APIRouter(tags=["status"])


@router.get("/healthz", responses={200: {"model": Alive}})
async def healthz() -> Response:
    """Alive: the process answers. Restart it if it does not."""
    return json_response({"status": "alive"})


@router.get("/readyz", responses={200: {"model": Alive}})
async def readyz(request: Request) -> Response:
    """Ready: it takes requests. A balancer sends none while it is not."""
    service = service_of(request)
    if not service.health().ready:
        why = "it is stopping" if service.stopping else "it must be restarted, its log says why"
        raise Problem(503, f"not ready: {why}", retry_after(5))
    return json_response({"status": "ready"})


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}, "description": "for Prometheus"}})
def metrics(request: Request) -> Response:
    """The numbers for Prometheus."""
    return Response(service_of(request).metrics.exposition(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/v1/stats", responses={200: {"model": Stats}})
def stats(request: Request) -> Response:
    """The numbers for people: the engine, recent rates and latencies, memory, and how even recommendations are."""
    service = service_of(request)
    health = service.health()
    return json_response(
        {
            "ready": health.ready,
            "durable": health.durable,
            "problem": health.problem,
            "model": health.model,
            "events": health.events,
            "users": health.users,
            "items": health.items,
            "cold_items": health.cold_items,
            "queue_depth": health.queue,
            "queue_limit": health.queue_limit,
            "last_commit_ms": health.commit_milliseconds,
            "last_batch_ms": health.applied_milliseconds,
            "clock": health.clock,
            "store_bytes": health.store_bytes,
            "uptime_seconds": round(time.time() - health.started, 1),
            "events_per_second": service.metrics.events_per_second(),
            "latencies": service.metrics.latencies(),
            "memory_bytes": memory_bytes(),
            "bias": asdict(service.engine.bias()),
        }
    )


def memory_bytes() -> int:
    """Resident memory of this process; where the system does not tell, the most it ever was."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
