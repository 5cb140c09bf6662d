"""`felrec demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where everything goes.")] = Path("runs/demo"),
) -> None:
    """Show everything at once, in about three minutes.

    Trains, tests and plots a small FELRec and a simple baseline on a real log of groceries.

    \b
    Example:
      felrec demo
    """  # noqa: D301
    from felrec.cli.compare import print_comparison
    from felrec.cli.progress import TerminalWatcher
    from felrec.cli.tables import output
    from felrec.demo import MODELS, run_demo

    shown = run_demo(out, TerminalWatcher())
    console = output()
    console.print(f"log: {shown.source}: {shown.log.n_users:,} users, {shown.log.n_items:,} items\n")
    print_comparison(shown.result)
    console.print("\nlook at:")
    for file in shown.files:
        console.print(f"  {file}")
    console.print(f"\nuser {shown.user} last took:")
    for name in shown.had:
        console.print(f"  {name}")
    console.print(f"\nand {MODELS[0]} recommends (felrec recommend {out / MODELS[0]} --user {shown.user} -k 5):")
    for name in shown.recommended:
        console.print(f"  {name}")
    console.print(f"\ntry also: felrec evaluate {out / MODELS[0]} {shown.log_file} --cache empty")
