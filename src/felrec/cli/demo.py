"""`felrec demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

TRY = "open it, record an event under Live, then try a new item in the Cold-start lab; stop with Ctrl-C"


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output directory.")] = Path("runs/demo"),
    world: Annotated[
        Literal["groceries", "songs", "films"],
        typer.Option("--world", help="Real grocery baskets, synthetic songs, or films rated on Twitter."),
    ] = "groceries",
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Where films are downloaded to, unless they are there.")
    ] = Path("data"),
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="If it is in use, a free port is picked.")
    ] = 8000,
) -> None:
    """Try everything at once, in about a minute.

    Trains a small model and serves it with its web page, on this machine only. Groceries are real events, which come
    with the extra demo; songs are made up and need nothing; films (MovieTweetings, 3.5 MB) are real and downloaded.

    \b
    Examples:
      felrec demo
      felrec demo --world songs
      felrec demo --world films
    """  # noqa: D301
    from felrec.cli.serve import require_extra

    require_extra()
    from felrec.cli.progress import TerminalReporter
    from felrec.demo.running import run_demo

    run_demo(out, port, _announce, TerminalReporter(), world, data)


def _announce(address: str) -> None:
    typer.echo(f"{address}  {TRY}")
