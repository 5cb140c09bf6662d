"""Liveness, readiness and statistics."""

from __future__ import annotations

from dataclasses import fields

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from felrec.answers.statistics import Alive, EngineStats, Stats
from felrec.service.engine.memory import resident_bytes
from felrec.service.http.access import service_of
from felrec.service.http.fast_route import ProbeRoute
from felrec.service.http.headers import retry_after
from felrec.service.http.problems import Problem
from felrec.service.http.responses import json_response

router = APIRouter(tags=["status"])
frequent = APIRouter(tags=["status"], route_class=ProbeRoute)


@frequent.get("/healthz", responses={200: {"model": Alive}})
async def healthz(request: Request) -> Response:
    """Liveness: the process responds. Restart it if it does not."""
    return json_response(Alive("alive"))


@router.get("/readyz", responses={200: {"model": Alive}})
async def readyz(request: Request) -> Response:
    """Readiness: the service accepts requests. A load balancer sends none while it is not ready.

    The status is `read-only` while its store cannot be written, for example because the disk is full.
    """
    health = service_of(request).health()
    if not health.ready:
        raise Problem(503, f"not ready: {health.unready}", retry_after(5))
    return json_response(Alive("ready" if health.durable else "read-only"))


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}, "description": "for Prometheus"}})
def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    return Response(service_of(request).metrics.exposition(), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/v1/stats", responses={200: {"model": Stats}})
def stats(request: Request) -> Response:
    """Statistics of the engine, recent rates and latencies, memory, and how evenly items are recommended."""
    service = service_of(request)
    health = service.health()
    numbers = {one.name: getattr(health, one.name) for one in fields(EngineStats)}
    return json_response(
        Stats(
            **numbers,
            uptime_seconds=round(service.engine.clock.now() - health.started, 1),
            events_per_second=service.metrics.events_per_second(),
            latencies=service.metrics.latencies(),
            memory_bytes=resident_bytes(),
            bias=service.engine.bias(),
            feedback=service.engine.feedback.stats(),
        )
    )
