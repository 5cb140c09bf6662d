"""`felrec tune`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from felrec.cli.options import Device, Log, LogColumns, Scales, SettingsOptions, resumable, with_option_groups
from felrec.errors import ConfigError

if TYPE_CHECKING:
    from felrec.experiments.tuning import Attempt, By

SHOWN = 10  # trials in the table
UNCHANGED = "settings as they are"


@with_option_groups
def tune(
    log: Log,
    tried: Annotated[
        list[str],
        typer.Option(
            "--try",
            metavar="KEY=VALUES",
            help="A setting to try: a range (lr=0.001..0.1) or choices (width=32,64,128). Repeatable.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for the results.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="A name from felrec models.")] = "felrec-s",
    trials: Annotated[int, typer.Option(metavar="N", min=2, help="Combinations to try, the defaults included.")] = 20,
    by: Annotated[
        Literal["mrr", "hr@10", "rank"], typer.Option("--by", help="The metric on validation that chooses.")
    ] = "mrr",
    scale: Scales = None,
    *,
    given: SettingsOptions,
    device: Device = "cpu",
    columns: LogColumns,
) -> None:
    """Search for better settings of a model on a log.

    Trains the model with its settings as they are, then with random combinations of the settings to try. All are
    judged by the same events of the validation part, at most 10,000. The test part is not read. After an interruption
    the same command continues; with a higher --trials it searches further.

    \b
    Example:
      felrec tune events.parquet --out runs/tune --try lr=0.001..0.1 --try width=32,64,128 --scale minutes=5
    """  # noqa: D301
    from felrec.cli.progress import TerminalReporter
    from felrec.experiments import ExperimentRunner, read_scale
    from felrec.experiments.space import read_space
    from felrec.experiments.tuning import best_of, for_tuning
    from felrec.experiments.tuning import tune as search
    from felrec.registry import model_kind

    settings = given.settings()
    space = read_space(tried, model_kind(model))
    for name in settings.keys() & space.keys():
        raise ConfigError(f"{name} is both set and tried; leave out --set or --try")
    runner = ExperimentRunner(
        out / "runs", read_scale(scale or ()), (model,), settings, device=device, reporter=TerminalReporter()
    )
    runner.trial(model)  # report a misspelt setting before a large log is read
    data = for_tuning(log.stem, columns.read(log), runner.scale)
    with resumable(option=""):
        attempts = search(model, space, data, out, runner, trials=trials, seed=int(settings.get("seed", 0)))
    _print(attempts, by)
    best = best_of(attempts, by)
    chosen = {**settings, **best.settings, **best.training}
    words = ["felrec", "train", str(log), "--model", model, "--out", str(out / "best"), *columns.as_arguments()]
    words += [word for name, value in chosen.items() for word in ("--set", f"{name}={value}")]
    typer.echo(f"train the best with: {shlex.join(words)}")


def _print(attempts: list[Attempt], by: By) -> None:
    """Print the best trials and the first one, in which nothing was changed."""
    from felrec.cli.tables import output, print_table
    from felrec.evaluation.text import number

    names = ("mrr", "hr@10", "rank")
    order = sorted(range(len(attempts)), key=lambda n: -attempts[n].goodness(by))
    rows = []
    for n in order[:SHOWN] + [n for n in order[SHOWN:] if n == 0]:
        one = attempts[n]
        told = " ".join(f"{name}={value}" for name, value in one.settings.items()) or UNCHANGED
        values = [number(one.metrics.get(name)) for name in names]
        rows.append((str(n + 1), told, *values, f"{one.cpu_seconds:.0f} s"))
    print_table(("trial", "settings", *names, "CPU"), rows, left=2)
    best, first = (attempts[n].metrics.get(by) for n in (order[0], 0))
    output().print(f"best of {len(attempts)} on validation: {by} {number(best)}, with the {UNCHANGED} {number(first)}")
