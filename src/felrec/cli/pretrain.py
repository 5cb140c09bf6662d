"""`felrec pretrain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import (
    Config,
    Epochs,
    ItemColumn,
    Pairs,
    Resume,
    TimeColumn,
    TimeUnit,
    TrainingSeed,
    UserColumn,
    open_log,
    resumable,
    settings_of,
)


def pretrain(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for weights and checkpoints.")],
    logs: Annotated[list[Path] | None, typer.Argument(metavar="LOG...", help="Logs to train on.")] = None,
    synthetic: Annotated[int, typer.Option("--synthetic", metavar="N", min=0, help="Add N synthetic logs.")] = 0,
    events: Annotated[int, typer.Option("--events", metavar="N", min=100, help="Events per synthetic log.")] = 30_000,
    config: Config = None,
    pairs: Pairs = None,
    epochs: Epochs = None,
    seed: TrainingSeed = None,
    resume: Resume = False,
    user_col: UserColumn = None,
    item_col: ItemColumn = None,
    time_col: TimeColumn = None,
    time_unit: TimeUnit = "auto",
) -> None:
    """Train weights for unseen logs.

    Trains one felrec-s on several logs in turn. The weights hold no users or items, so they can be evaluated and served
    on any log.

    \b
    Example:
      felrec pretrain films.parquet edits.parquet --synthetic 6 --out weights
      felrec evaluate weights another.parquet
    """  # noqa: D301
    from felrec.cli.progress import TerminalWatcher
    from felrec.data.split import split_log
    from felrec.data.worlds import synthetic_worlds
    from felrec.pretraining import MODEL, pretrain
    from felrec.registry import model_kind

    settings = settings_of(config, pairs, epochs, seed)
    _, training = model_kind(MODEL).divide(settings)  # report a misspelt setting before the logs are read
    read = [open_log(log, user_col, item_col, time_col, time_unit) for log in logs or []]
    splits = [split_log(log) for log in [*read, *synthetic_worlds(synthetic, events, training.seed)]]
    with resumable(), TerminalWatcher().training(MODEL, out) as progress:
        pretrain(splits, out, settings, resume=resume, listeners=(progress,))
    typer.echo(f"the weights are in {out}; try them with: felrec evaluate {out} LOG")
