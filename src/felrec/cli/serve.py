"""`felrec serve`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import Run
from felrec.cli.stores import store_of
from felrec.errors import ConfigError, how_to_install


def serve(
    run: Run = Path("pretrained"),
    store: Annotated[
        Path | None, typer.Option("--store", metavar="PATH", help="The SQLite file; store.sqlite in DIR, or here.")
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")] = 8000,
    keys: Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="Who may read and write.")] = None,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Of one computation.")] = 1,
) -> None:
    """Serve a model: events in, recommendations out, and a page to see it happen.

    Without DIR it serves the weights that come with felrec, which need no training and learn a new platform from its
    events. Only this machine can reach it, unless --host says otherwise; then it needs --keys. Logs are JSON lines on
    stderr.

    \b
    Example:
      felrec serve
      felrec serve runs/s
      felrec serve runs/q --store /var/lib/felrec/store.sqlite --host 0.0.0.0 --keys keys.json
    """  # noqa: D301
    require_extra()
    from felrec.service.http.keys import KeyFile
    from felrec.service.http.listening import check_access, listen
    from felrec.service.http.logs import log_to_stderr

    key_file = KeyFile(keys) if keys else None
    check_access(host, key_file)
    listener = listen(host, port)

    import torch

    from felrec.service.http.server import serve_run

    log_to_stderr()
    torch.set_num_threads(threads)  # requests are answered beside one another, so each needs only one
    serve_run(run, store or store_of(run), listener, key_file, _announce)


def _announce(url: str) -> None:
    typer.echo(f"serving at {url} (stop with Ctrl-C)")
    sys.stdout.flush()


def require_extra() -> None:
    """Say what to install, if a package of the service is missing."""
    if any(find_spec(name) is None for name in ("apsw", "fastapi", "prometheus_client", "uvicorn")):
        raise ConfigError(f"the service needs more packages; {how_to_install('serve')}")
