"""`felrec pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import LogColumns, TrainingOptions, resumable, with_option_groups


@with_option_groups
def pretrain(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for weights and checkpoints.")],
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs to train on.")] = None,
    synthetic: Annotated[int, typer.Option("--synthetic", metavar="N", min=0, help="Add N synthetic logs.")] = 0,
    events: Annotated[int, typer.Option("--events", metavar="N", min=100, help="Events per synthetic log.")] = 30_000,
    *,
    training: TrainingOptions,
    columns: LogColumns,
) -> None:
    """Train weights for unseen logs.

    Trains one felrec-s on several logs in turn. The weights hold no users or items, so they can be evaluated and served
    on any log.

    \b
    Example:
      felrec pretrain films.parquet edits.parquet --synthetic 6 --out weights
      felrec evaluate weights another.parquet
    """  # noqa: D301
    from felrec.cli.progress import TerminalReporter
    from felrec.data.split import split_log
    from felrec.data.worlds import synthetic_worlds
    from felrec.pretraining import MODEL, pretrain
    from felrec.registry import model_kind

    settings = training.settings()
    resolved = model_kind(MODEL).divide(settings)[1]  # report a misspelt setting before the logs are read
    read = columns.read_each(logs or [])
    splits = [split_log(log) for log in [*read, *synthetic_worlds(synthetic, events, resolved.seed)]]
    with resumable(), TerminalReporter().training(MODEL, out) as progress:
        pretrain(splits, out, settings, resume=training.resume, listeners=(progress,))
    typer.echo(f"the weights are in {out}; try them with: felrec evaluate {out} LOG")
