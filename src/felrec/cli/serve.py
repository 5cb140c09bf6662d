"""`felrec serve`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from felrec.cli.options import Run, with_option_groups
from felrec.cli.serve_limits import LimitOptions, read_memory
from felrec.cli.stores import store_of
from felrec.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    from felrec.service.http.preflight import Start


@with_option_groups
def serve(
    run: Run = Path("pretrained"),
    store: Annotated[
        Path | None, typer.Option("--store", metavar="PATH", help="SQLite file; default: store.sqlite in DIR, or here.")
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 picks a free port.")] = 8000,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="File of API keys.")] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="FILE", help="Record writes and erasures, as JSON lines.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what is open, unprotected or missing, and do not start.")
    ] = False,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads per computation.")] = 1,
    *,
    limits: LimitOptions,
) -> None:
    """Serve a model over HTTP, with a web page.

    Without DIR it serves the bundled weights, which need no training and adapt as events arrive. It listens on this
    machine only; any other --host requires --keys. Logs are JSON lines on stderr.

    At a limit of users, items or memory it refuses what is new and goes on for what it knows. A share of memory (80%)
    is one of the machine's memory, or of the limit of its container or systemd service.

    With --check the exit code is 0 if all is well, 1 after a warning and 2 after an error; nothing on disk changes.

    \b
    Example:
      felrec serve
      felrec serve runs/s
      felrec serve runs/q --store /var/lib/felrec/store.sqlite --host 0.0.0.0 --keys keys.json
      felrec serve runs/q --store /var/lib/felrec/store.sqlite --host 0.0.0.0 --keys keys.json --check
    """  # noqa: D301
    require_extra()
    from felrec.service.http.keys import KeyFile
    from felrec.service.http.listening import allow_connections, check_access, listen
    from felrec.service.http.logs import log_to_stderr

    read_memory(limits.max_memory)  # before anything is opened
    key_file, store = KeyFile(keys) if keys else None, store or store_of(run)
    if check:
        from felrec.service.http.preflight import Start

        _check(Start(run, store, host, port, key_file, audit, limits.max_connections))
    check_access(host, key_file)
    listener = listen(host, port)
    allow_connections(limits.max_connections)

    import torch

    from felrec.service.http.audit import AuditLog, Digests
    from felrec.service.http.server import LIMITS, serve_run

    log_to_stderr()
    torch.set_num_threads(threads)  # requests run concurrently, so one thread each is enough
    log = AuditLog(audit, Digests.beside(store)) if audit else None
    serve_run(run, store, listener, key_file, _announce, limits.state(LIMITS), log, limits.connections())


def _check(start: Start) -> NoReturn:
    from felrec.cli.tables import print_table
    from felrec.service.http.preflight import check_start

    findings = check_start(start)
    print_table(("check", "state", "details"), [(one.what, one.state, one.details) for one in findings], left=3)
    states = {one.state for one in findings}
    raise typer.Exit(2 if "error" in states else 1 if "warning" in states else 0)


def _announce(url: str) -> None:
    typer.echo(f"serving at {url} (stop with Ctrl-C)")


def require_extra() -> None:
    """Raise an error that says what to install if a package of the service is missing."""
    if any(find_spec(name) is None for name in ("apsw", "fastapi", "prometheus_client", "uvicorn")):
        raise ConfigError(f"the service needs packages that are not installed; {how_to_install('serve')}")
