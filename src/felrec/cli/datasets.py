"""`felrec datasets`: lists the known datasets and fetches them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List known datasets, or fetch one.

    The list shows the size, licence and source of each.

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
    print_table(("name", "description", "source", "licence", "rows", "users", "items"), rows, left=4)
    typer.echo("\nfetch one with: felrec datasets fetch NAME --to DIR")


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from felrec datasets.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Directory in which to create its folder.")],
    sha256: Annotated[
        str | None, typer.Option("--sha256", metavar="SUM", help="Expected SHA-256 of the download.")
    ] = None,
) -> None:
    """Download a dataset, verify it and unpack it into DIR/NAME.

    An interrupted download is resumed. MovieLens is verified against the checksums that GroupLens publishes. The other
    datasets have no published checksum: the command prints the SHA-256 of the download, to pass as --sha256 next time.

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
    typer.echo(f"{log} is ready; inspect it with: felrec inspect {log}")
