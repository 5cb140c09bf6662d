"""`felrec demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

TRY = "open it, take something under Live, then let a new product rise under Cold-start lab; stop with Ctrl-C"


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where everything goes.")] = Path("runs/demo"),
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="If it is taken, a free one is used.")
    ] = 8000,
) -> None:
    """Show everything at once, in about a minute.

    Trains a small model on real grocery baskets and serves it with its page, to this machine alone.

    \b
    Example:
      felrec demo
    """  # noqa: D301
    from felrec.cli.serve import require_extra

    require_extra()
    from felrec.cli.progress import TerminalWatcher
    from felrec.demo import run_demo

    run_demo(out, port, _announce, TerminalWatcher())


def _announce(address: str) -> None:
    typer.echo(f"{address}  {TRY}")
    sys.stdout.flush()
