"""Options that several commands share, and what they mean."""

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
        metavar="DIR", help="What felrec train or felrec pretrain made; 'pretrained' for the weights of felrec itself."
    ),
]
UserColumn = Annotated[str | None, typer.Option("--user-col", metavar="NAME", help="Column of the users.")]
ItemColumn = Annotated[str | None, typer.Option("--item-col", metavar="NAME", help="Column of the items.")]
TimeColumn = Annotated[str | None, typer.Option("--time-col", metavar="NAME", help="Column of the times.")]
TimeUnit = Annotated[str, typer.Option("--time-unit", metavar="UNIT", help="Unit of the times: auto, s, ms, us or ns.")]
Config = Annotated[Path | None, typer.Option("--config", metavar="F.toml", help="Settings from a TOML file.")]
Pairs = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be given several times.")
]
Epochs = Annotated[int | None, typer.Option("--epochs", metavar="N", help="Passes over the training part.")]
TrainingSeed = Annotated[int | None, typer.Option("--seed", metavar="S", help="Of weights, dropout and queues.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue what was interrupted, or begin.")]
Device = Annotated[str, typer.Option("--device", metavar="D", help="cpu, cuda or auto.")]


def open_log(
    path: Path, user_col: str | None, item_col: str | None, time_col: str | None, time_unit: str
) -> InteractionLog:
    """Read a log as the log-reading options say."""
    from felrec.data.reading.sources import read_log

    return read_log(path, user_col=user_col, item_col=item_col, time_col=time_col, time_unit=time_unit)


def settings_of(
    config: Path | None, pairs: Sequence[str] | None, epochs: int | None = None, seed: int | None = None
) -> dict[str, Any]:
    """Merge the settings of the file, over them those of `--set`, over them `--epochs` and `--seed`."""
    from felrec.config import read_config, read_pairs

    settings: dict[str, Any] = read_config(config) if config else {}
    settings |= read_pairs(pairs or ())
    named = {"epochs": epochs, "seed": seed}
    return settings | {name: value for name, value in named.items() if value is not None}


@contextmanager
def resumable(option: str = " --resume") -> Iterator[None]:
    """Answer Ctrl-C with the command that goes on from there, by that option if it needs one."""
    try:
        yield
    except KeyboardInterrupt:
        arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
        print(f"\ninterrupted; continue with felrec {shlex.join(arguments)}{option}", file=sys.stderr)
        raise typer.Exit(130) from None
