"""Run the application until a signal, then shut down gracefully: not ready, finish, drain, close, exit 0."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from felrec import runs
from felrec.data.kinds import KindTable
from felrec.data.log import InteractionLog
from felrec.fitted import FittedModel
from felrec.service.engine.cluster.member import AnyEngine, Member
from felrec.service.engine.engine import Engine
from felrec.service.engine.freed_memory import give_back_memory
from felrec.service.engine.limits import Limits
from felrec.service.http.access import Service
from felrec.service.http.app import create_app
from felrec.service.http.audit import AuditLog
from felrec.service.http.connections import DEFAULT_LIMITS, ConnectionLimits, Connections
from felrec.service.http.headers import LOCAL
from felrec.service.http.keys import KeyFile
from felrec.service.http.logs import note
from felrec.service.http.protocol import BoundedProtocol
from felrec.store.opening import open_store
from felrec.store.protocol import SharedStore

LINGER = 1.0  # seconds for which a stopping service still answers, so that a load balancer notices
LIMITS = Limits(queue_seconds=3.0)  # a 429 is better than a late answer
PATIENCE = 30  # seconds for complete requests to finish; incomplete ones are cut at once
BACKLOG = 512  # connections that the system accepts for us; far fewer than there may be, so that none is cut unread
SWITCH = 0.001  # seconds a thread keeps the GIL while others wait; the default of 5 ms shows in latencies

Announce = Callable[[str], object]


@dataclass(frozen=True)
class StorePlace:
    """Where a store is, and whether other processes have it open too."""

    address: str  # of a file, or of a database: postgresql://…
    namespace: str | None = None  # which of the stores of a database
    shared: bool = False


def serve_run(
    run: Path,
    store: StorePlace,
    listener: socket.socket,
    keys: KeyFile | None,
    announce: Announce,
    engine_limits: Limits,
    audit: AuditLog | None = None,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    ab_trending: float = 0.0,
    kinds: KindTable | None = None,
    log: InteractionLog | None = None,
) -> None:
    """Serve a run from a store until SIGTERM or SIGINT; a new store starts with the state of the run."""
    began = time.monotonic()
    model = runs.load(run)  # first, so that no file is created if it fails
    opened = open_store(store.address, namespace=store.namespace, shared=store.shared)
    lacks_the_newest = opened.is_empty and bool(model.fingerprint)
    engine = open_engine(opened, store.shared, model, engine_limits, log)
    health = engine.health()
    if lacks_the_newest:
        note("the store starts after the validation part of the run's log; add the rest with felrec import LOG")
    note(
        "loaded",
        model=health.model,
        events=health.events,
        users=health.users,
        items=health.items,
        memory_limit=health.memory_limit,
        store=opened.name,
        seconds=round(time.monotonic() - began, 2),
    )
    serve(engine, listener, keys, announce, audit, limits, ab_trending, kinds)


def open_engine(
    store: SharedStore, shared: bool, model: FittedModel, limits: Limits, log: InteractionLog | None = None
) -> AnyEngine:
    """An engine for a store that it has alone, or one of several that share it; for `log` see `Engine.open`."""
    if shared:
        return Member.open(store, model, limits=limits, log=log)
    return Engine.open(store, model, limits=limits, log=log)


def serve(
    engine: AnyEngine,
    listener: socket.socket,
    keys: KeyFile | None,
    announce: Announce,
    audit: AuditLog | None = None,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    ab_trending: float = 0.0,
    kinds: KindTable | None = None,
) -> None:
    """Serve an engine until SIGTERM or SIGINT, then close it. `announce` receives the address when it is ready."""
    sys.setswitchinterval(SWITCH)
    hosts = None if keys else LOCAL
    app = create_app(engine, keys=keys, hosts=hosts, audit=audit, ab_trending=ab_trending, kinds=kinds)
    GracefulServer(configured(app, limits), app.state.service, announce).run(sockets=[listener])


def configured(app: FastAPI, limits: ConnectionLimits = DEFAULT_LIMITS) -> uvicorn.Config:
    """The settings of uvicorn: no own logs, bounded connections, and time for complete requests to finish."""
    connections = Connections(limits, refused=app.state.service.metrics.was_refused)
    return uvicorn.Config(
        app,
        http=partial(BoundedProtocol, connections=connections),  # type: ignore[arg-type]  # called like the class
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=PATIENCE,
    )


class GracefulServer(uvicorn.Server):
    """Reports not ready for a moment before it stops listening. A second signal stops it immediately."""

    def __init__(self, config: uvicorn.Config, service: Service, announce: Announce) -> None:
        super().__init__(config)
        self.service, self.announce = service, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting requests and announce the address."""
        await super().startup(sockets)
        gc.collect()
        give_back_memory()
        gc.freeze()  # what is there stays, and scanning it takes 25 ms each time, in which nothing else runs
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            self.announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the shutdown."""
        if self.service.stopping:
            self.should_exit = True
            self.force_exit = sig == signal.SIGINT
            return
        self.service.stopping = True
        note("stopping", signal=signal.Signals(sig).name)
        asyncio.get_running_loop().call_later(LINGER, self._stop_listening)

    def _stop_listening(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but a handled signal is not raised again, so that the exit code is 0."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
