"""Options that several commands share, and the code that reads them."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from felrec.errors import ConfigError

if TYPE_CHECKING:
    from felrec.data.log import InteractionLog

Log = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="Parquet, CSV, TSV, JSON lines or .inter file, a folder of them, or a pattern such as 'log/*.csv'.",
    ),
]
Run = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="A run of felrec train or felrec pretrain, or 'pretrained' for the bundled weights."
    ),
]
Pairs = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override one setting; repeatable.")
]
SplitOption = Annotated[
    Literal["last-events", "tgb", "time-to-split"],
    typer.Option(
        "--split",
        help="Where to cut the log. last-events: the last two tenths of the events validate and test. tgb and "
        "time-to-split: as two published benchmarks do, by time.",
    ),
]
Scales = Annotated[
    list[str] | None,
    typer.Option(
        "--scale",
        metavar="KEY=VALUE",
        help="Scale it down: events (the newest; a share up to 1, a number above), epochs, trained_share (share of "
        "events with gradients), minutes (CPU minutes to train each model). Repeatable.",
    ),
]
Device = Annotated[str, typer.Option("--device", metavar="D", help="cpu, cuda or auto.")]


@dataclass(frozen=True)
class LogColumns:
    """The options that say how to read a log."""

    user_col: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the user column.")] = None
    item_col: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the item column.")] = None
    time_col: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the time column.")] = None
    time_unit: Annotated[str, typer.Option(metavar="UNIT", help="Unit of the times: auto, s, ms, us or ns.")] = "auto"
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Read only such rows: 'kind=purchase' or 'rating>=4'; repeatable."),
    ] = None
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="What kinds of events mean: 'view=context,purchase=2,dislike=negative,spam=ignore,rating<3=negative',"
            " or a TOML file with such a table.",
        ),
    ] = None
    newest: Annotated[int | None, typer.Option(metavar="N", min=1, help="Use only the newest N events of the log.")] = (
        None
    )
    bad_rows: Annotated[
        Literal["refuse", "skip"], typer.Option(help="Rows that cannot be read: refuse the log, or leave them out.")
    ] = "refuse"
    max_bad: Annotated[
        float, typer.Option(metavar="SHARE", help="Refuse the log if a larger share of its rows would be left out.")
    ] = 0.05
    rejected: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows that cannot be read to this CSV file.")
    ] = None

    def read(self, log: Path) -> InteractionLog:
        """Read a log with these options; say on stderr which rows were left out."""
        from felrec.data.reading.sources import read_log

        read = read_log(log, **asdict(self) | {"where": self.where or ()})
        if read.skipped:
            typer.echo("\n  ".join((f"{log}: {read.skipped}", *read.skipped.reasons)), err=True)
        if read.ignored:
            typer.echo(f"{log}: left out {read.ignored:,} events that --kinds says to ignore", err=True)
        if read.unmatched:
            typer.echo(f"{log}: {_unmatched(read)}", err=True)
        return read

    def read_each(self, logs: Sequence[Path]) -> list[InteractionLog]:
        """Read several logs; only one of them could write the file of rejected rows."""
        if self.rejected and len(logs) > 1:
            raise ConfigError(f"--rejected {self.rejected}: takes the rows of one log; use felrec inspect LOG")
        return [self.read(log) for log in logs]

    def as_arguments(self) -> list[str]:
        """The options that differ from the defaults, as words of a command line."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        each = [(name, one) for name, value in given.items() for one in (value if isinstance(value, list) else [value])]
        return [word for name, value in each for word in (f"--{name.replace('_', '-')}", str(value))]


def _unmatched(log: InteractionLog) -> str:
    """What is misspelt in a table of kinds, perhaps; it may also be for several logs."""
    entries = ", ".join(map(repr, log.unmatched))
    kinds = [kind for kind in (log.kinds.counts if log.kinds else ()) if kind][:8]
    misspelt = kinds and not all(set("<>") & set(entry) for entry in log.unmatched)
    return f"no event matches {entries} of --kinds" + (f"; kinds here are {', '.join(kinds)}" if misspelt else "")


@dataclass(frozen=True)
class SettingsOptions:
    """The options that set how models are trained."""

    config: Annotated[Path | None, typer.Option(metavar="F.toml", help="Read settings from a TOML file.")] = None
    pairs: Pairs = None
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A named set of settings, which --config and --set override. FELRec-S has 'sequence', for "
            "logs with long histories; FELRec-Q and -P have 'ordinary', for logs of 100,000 to 3 million events.",
        ),
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="S", help="Seed of weights, dropout and queues.")] = None

    def settings(self) -> dict[str, Any]:
        """Merge the settings; later ones win: the config file, then `--set`, then `--seed`."""
        from felrec.config import read_config, read_pairs

        settings: dict[str, Any] = read_config(self.config) if self.config else {}
        settings |= read_pairs(self.pairs or ()) | ({"recipe": self.recipe} if self.recipe else {})
        return settings if self.seed is None else {**settings, "seed": self.seed}


@dataclass(frozen=True)
class TrainingOptions(SettingsOptions):
    """The options of one training run."""

    epochs: Annotated[int | None, typer.Option(metavar="N", help="Passes over the training part.")] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run, or start a new one.")] = False

    def settings(self) -> dict[str, Any]:
        """Merge the settings as above; `--epochs` wins as `--seed` does."""
        settings = super().settings()
        return settings if self.epochs is None else {**settings, "epochs": self.epochs}


@dataclass(frozen=True)
class ListOptions:
    """The options of metrics of recommended lists."""

    k: Annotated[
        str | None,
        typer.Option(
            metavar="5,10,50",
            help="Also show recall, precision, MAP, NDCG, coverage, Gini and novelty at these k.",
        ),
    ] = None
    tags: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Tags of items (CSV, TSV, Parquet: item, tags), for the diversity of lists."),
    ] = None

    def read(self) -> dict[str, Any]:
        """The arguments `k` and `tags` of an evaluation."""
        from felrec.data.tags import read_tags
        from felrec.evaluation.metrics import read_cutoffs

        if self.tags and not self.k:
            raise ConfigError("--tags are for the diversity of lists; give their lengths too, as in --k 10")
        return {"k": read_cutoffs(self.k) if self.k else (), "tags": read_tags(self.tags) if self.tags else None}


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take dataclasses of options: on the command line each of their fields is an option."""
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in parameters.items() if is_dataclass(one.annotation)}
    options = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option: given.pop(option) for option in options[name]})
        command(**given)

    expanded = [options[name].values() if name in groups else [one] for name, one in parameters.items()]
    shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for several in expanded for one in several]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


@contextmanager
def resumable(option: str = " --resume", program: str = "felrec", silent: bool = False) -> Iterator[None]:
    """On Ctrl-C print the command that continues, with `option` appended, and exit with code 130."""
    try:
        yield
    except KeyboardInterrupt:
        arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
        if not silent:
            print(f"\ninterrupted; continue with {program} {shlex.join(arguments)}{option}", file=sys.stderr)
        raise typer.Exit(130) from None
