"""`felrec datasets`: what can be fetched, and fetching it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List known datasets, or fetch one.

    The list has their size, licence and where they come from.

    \b
    Example:
      felrec datasets
      felrec datasets fetch ml-100k --to data
    """  # noqa: D301
    if context.invoked_subcommand is not None:
        return
    from felrec.cli.tables import print_table
    from felrec.data.reading.datasets import DATASETS

    rows = [
        (name, d.title, d.homepage, d.licence, f"{d.rows:,}", f"{d.users:,}", f"{d.items:,}")
        for name, d in DATASETS.items()
    ]
    print_table(("name", "what", "from", "licence", "rows", "users", "items"), rows, left=4)
    typer.echo("\nfetch one with: felrec datasets fetch NAME --to DIR")


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As felrec datasets lists it.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where its folder is made.")],
    sha256: Annotated[
        str | None, typer.Option("--sha256", metavar="SUM", help="Check the download against a sum of your own.")
    ] = None,
) -> None:
    """Download a dataset, check it and unpack it into DIR/NAME.

    A download that broke off is continued. MovieLens is checked against the
    sums that GroupLens publishes. The others are published without one: the
    SHA-256 of what came is printed, to be given as --sha256 the next time.

    \b
    Example:
      felrec datasets fetch ml-100k --to data
      felrec inspect data/ml-100k
    """  # noqa: D301
    from felrec.cli.progress import bytes_bar
    from felrec.data.reading.datasets import DATASETS
    from felrec.data.reading.fetch import fetch, sha256_of

    with bytes_bar(name) as progress:
        log = fetch(name, to, progress, sha256=sha256)
    if not DATASETS[name].md5 and not sha256:
        typer.echo(f"no checksum is published for {name}; the SHA-256 of {log} is {sha256_of(log)}")
    typer.echo(f"{log} is ready; look at it with: felrec inspect {log}")
