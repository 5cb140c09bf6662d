"""`felrec merge-recs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge_recs(
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="All shards of one job, in any order.")],
    out: Annotated[Path, typer.Option("--out", metavar="F", help="File to write, Parquet or CSV.")],
) -> None:
    """Make one file of the shards that felrec recommend --shard wrote.

    The file is the one that a single process would have written. The shards are kept.

    \b
    Example:
      felrec recommend runs/q --all --out recs.parquet --shard 1/2
      felrec recommend runs/q --all --out recs.parquet --shard 2/2
      felrec merge-recs recs.parquet.*-of-2 --out recs.parquet
    """  # noqa: D301
    from felrec.batch import merge

    rows = merge(shards, out)
    typer.echo(f"wrote {rows:,} recommendations from {len(shards):,} shards to {out}")
