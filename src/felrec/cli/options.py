"""Options that several commands share, and the code that reads them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from felrec.data.log import InteractionLog

Log = Annotated[
    Path,
    typer.Argument(metavar="LOG", help="Parquet, CSV, TSV or .inter file, or the folder of a known dataset."),
]
Run = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="A run of felrec train or felrec pretrain, or 'pretrained' for the bundled weights."
    ),
]
UserColumn = Annotated[str | None, typer.Option("--user-col", metavar="NAME", help="Name of the user column.")]
ItemColumn = Annotated[str | None, typer.Option("--item-col", metavar="NAME", help="Name of the item column.")]
TimeColumn = Annotated[str | None, typer.Option("--time-col", metavar="NAME", help="Name of the time column.")]
TimeUnit = Annotated[str, typer.Option("--time-unit", metavar="UNIT", help="Unit of the times: auto, s, ms, us or ns.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="F.toml", help="Read settings from a TOML file.")]
Pairs = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override one setting; repeatable.")
]
Epochs = Annotated[int | None, typer.Option("--epochs", metavar="N", help="Passes over the training part.")]
TrainingSeed = Annotated[int | None, typer.Option("--seed", metavar="S", help="Seed of weights, dropout and queues.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run, or start a new one.")]
Device = Annotated[str, typer.Option("--device", metavar="D", help="cpu, cuda or auto.")]


def open_log(
    path: Path, user_col: str | None, item_col: str | None, time_col: str | None, time_unit: str
) -> InteractionLog:
    """Read a log with the column and time options of the command line."""
    from felrec.data.reading.sources import read_log

    return read_log(path, user_col=user_col, item_col=item_col, time_col=time_col, time_unit=time_unit)


def settings_of(
    config: Path | None, pairs: Sequence[str] | None, epochs: int | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Merge settings; later ones win: the config file, then `--set`, then `--epochs` and `--seed`."""
    from felrec.config import read_config, read_pairs

    settings: dict[str, Any] = read_config(config) if config else {}
    settings |= read_pairs(pairs or ())
    named = {"epochs": epochs, "seed": seed}
    return settings | {name: value for name, value in named.items() if value is not None}


@contextmanager
def resumable(option: str = " --resume") -> Iterator[None]:
    """On Ctrl-C print the command that continues, with `option` appended, and exit with code 130."""
    try:
        yield
    except KeyboardInterrupt:
        arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
        print(f"\ninterrupted; continue with felrec {shlex.join(arguments)}{option}", file=sys.stderr)
        raise typer.Exit(130) from None
