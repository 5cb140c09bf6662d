"""`felrec demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TRY = "open it, record an event under Live, then try a new product in the Cold-start lab; stop with Ctrl-C"


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output directory.")] = Path("runs/demo"),
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="If it is in use, a free port is picked.")
    ] = 8000,
) -> None:
    """Try everything at once, in about a minute.

    Trains a small model on real grocery baskets and serves it with its web page, on this machine only.

    \b
    Example:
      felrec demo
    """  # noqa: D301
    from felrec.cli.serve import require_extra

    require_extra()
    from felrec.cli.progress import TerminalReporter
    from felrec.demo import run_demo

    run_demo(out, port, _announce, TerminalReporter())


def _announce(address: str) -> None:
    typer.echo(f"{address}  {TRY}")
