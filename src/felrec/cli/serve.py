"""`felrec serve`."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from felrec.cli.options import Run, with_option_groups
from felrec.cli.serve_limits import LimitOptions, read_memory
from felrec.cli.stores import store_file, store_of
from felrec.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    from felrec.service.http.preflight import Start


@with_option_groups
def serve(
    run: Run = Path("pretrained"),
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="PLACE",
            envvar="FELREC_STORE",
            help="SQLite file, or postgresql://…; default: store.sqlite in DIR, or here.",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", metavar="NAME", envvar="FELREC_NAMESPACE", help="Which store of a PostgreSQL database."
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", metavar="N", min=1, help="Processes that answer at this address.")
    ] = 1,
    shared: Annotated[
        bool, typer.Option("--shared", help="Let other felrec serve have the file open too; one of them writes.")
    ] = False,
    never_lead: Annotated[
        bool, typer.Option("--never-lead", help="Only follow: leave writing to other processes of the store.")
    ] = False,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 picks a free port.")] = 8000,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys.")] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="Record writes and erasures, as JSON lines.")
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            "--kinds", metavar="TABLE", help="What kinds of events mean, as in felrec import; default: all count alike."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what is open, unprotected or missing, and do not start.")
    ] = False,
    ab_trending: Annotated[
        float,
        typer.Option(
            "--ab-trending", metavar="SHARE", min=0, max=0.99, help="Share of users who get trending items, as a test."
        ),
    ] = 0.0,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="LOG", help="For --forget-after: training log of the run that the store started from."
        ),
    ] = None,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads per computation.")] = 1,
    *,
    limits: LimitOptions,
) -> None:
    """Serve a model over HTTP, with a web page.

    Without DIR it serves the bundled weights, which need no training and adapt as events arrive. It listens on this
    machine only; any other --host requires --keys. Logs are JSON lines on stderr.

    At a limit of users, items or memory it refuses what is new and goes on for what it knows. A share of memory (80%)
    is one of the machine's memory, or of the limit of its container or systemd service.

    With --ab-trending 0.05 a twentieth of the users gets trending items instead of the model's. Report impressions and
    clicks to POST /v1/feedback: /v1/stats and the page then compare the click rates of both, with intervals.

    With --processes, or with a PostgreSQL database, any number of processes share a store: one of them writes, the
    others follow it, and one takes over when it dies.

    With --check the exit code is 0 if all is well, 1 after a warning and 2 after an error; nothing on disk changes.

    \b
    Example:
      felrec serve
      felrec serve runs/s
      felrec serve runs/s --kinds view=context,purchase=1,dislike=negative
      felrec serve runs/q --store /var/lib/felrec/store.sqlite --host 0.0.0.0 --keys keys.json
      felrec serve runs/q --processes 4
      felrec serve runs/q --store postgresql://felrec@db/felrec --namespace shop-a
      felrec serve runs/q --store /var/lib/felrec/store.sqlite --host 0.0.0.0 --keys keys.json --check
    """  # noqa: D301
    require_extra()
    from felrec.data.kinds import KindTable
    from felrec.service.http.keys import KeyFile
    from felrec.service.http.listening import allow_connections, check_access, listen
    from felrec.service.http.logs import log_to_stderr
    from felrec.service.http.supervising import split_into

    read_memory(limits.max_memory)  # before anything is opened
    table = KindTable.of(kinds)
    key_file = KeyFile(keys) if keys else None
    address = store or str(store_of(run))
    path = store_file(address)
    if check and path is None:
        raise ConfigError("--check looks at the files of a service; check a database with felrec verify")
    if check and path is not None:
        from felrec.service.http.preflight import Start

        _check(Start(run, path, host, port, key_file, audit, limits.max_connections))
    check_access(host, key_file)
    listener = listen(host, port)
    allow_connections(limits.max_connections)
    number = split_into(processes) if processes > 1 else 0  # before there are threads

    import torch

    from felrec.data.reading.sources import read_log
    from felrec.service.http.audit import AuditLog, Digests
    from felrec.service.http.server import LIMITS, StorePlace, serve_run

    log_to_stderr()
    torch.set_num_threads(threads)  # requests run concurrently, so one thread each is enough
    audit_log = AuditLog(audit, Digests.beside(path or audit)) if audit else None
    place = StorePlace(address, namespace, shared or processes > 1 or path is None)
    if never_lead and not place.shared:
        raise ConfigError("--never-lead: nobody else has this store open; give --shared, or a database")
    state_limits = replace(limits.state(LIMITS, processes), may_lead=not never_lead)
    base = read_log(log, kinds=kinds) if log and limits.forget_after else None
    settings = state_limits, audit_log, limits.connections(), ab_trending, table, base
    announce = _announce if number == 0 else _say_nothing
    serve_run(run, place, listener, key_file, announce, *settings)


def _check(start: Start) -> NoReturn:
    from felrec.cli.tables import print_table
    from felrec.service.http.preflight import check_start

    findings = check_start(start)
    print_table(("check", "state", "details"), [(one.what, one.state, one.details) for one in findings], left=3)
    states = {one.state for one in findings}
    raise typer.Exit(2 if "error" in states else 1 if "warning" in states else 0)


def _announce(url: str) -> None:
    typer.echo(f"serving at {url} (stop with Ctrl-C)")


def _say_nothing(url: str) -> None:
    """The first process announces the address of all."""


def require_extra() -> None:
    """Raise an error that says what to install if a package of the service is missing."""
    if any(find_spec(name) is None for name in ("apsw", "fastapi", "prometheus_client", "uvicorn")):
        raise ConfigError(f"the service needs packages that are not installed; {how_to_install('serve')}")
