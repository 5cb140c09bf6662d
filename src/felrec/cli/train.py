"""`felrec train`."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import Device, Log, LogColumns, SplitOption, TrainingOptions, resumable, with_option_groups


@with_option_groups
def train(
    log: Log,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Run directory to create.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="A name from felrec models.")] = "felrec-s",
    *,
    training: TrainingOptions,
    cut: SplitOption = "last-events",
    device: Device = "cpu",
    columns: LogColumns,
) -> None:
    """Train a model on a log.

    Uses the first 80 % of the events to train and the next 10 % to pick the best epoch. The last 10 % are for testing.
    --split cuts the log elsewhere. Several processes, which torchrun starts, train FELRec-S, -Q and -P together.

    \b
    Example:
      felrec train events.parquet --out runs/s
      felrec train events.parquet --out runs/s --resume
      felrec train events.parquet --model felrec-q --out runs/q --epochs 5 --set width=64
      felrec train events.parquet --model felrec-q --recipe ordinary --out runs/q
      torchrun --standalone --nproc-per-node 2 -m felrec train events.parquet --model felrec-q --out runs/q
    """  # noqa: D301
    from felrec import runs
    from felrec.cli.interrupts import StopAfterStep, interrupts_counted
    from felrec.cli.progress import TerminalReporter
    from felrec.data.published_splits import split_by
    from felrec.registry import model_kind
    from felrec.training.checkpoint import RunDirectory
    from felrec.training.distributed import launched, rank

    kind, settings = model_kind(model), training.settings()
    kind.divide(settings)  # report a misspelt setting before a large log is read
    split = split_by(cut, columns.read(log))
    begin = partial(runs.train, split, model, out, settings, device=device, resume=training.resume)
    with resumable(program="felrec" if launched() == 1 else "torchrun … -m felrec", silent=rank() > 0):
        if rank() > 0:  # of processes that train together, the first one speaks
            begin()
            return
        with TerminalReporter().training(model, out) as progress:
            if launched() > 1:  # the others would wait for a process that ends by itself
                begin(listeners=(progress,), progress=progress)
            else:
                with interrupts_counted() as interrupts:
                    begin(listeners=(progress, StopAfterStep(interrupts)), progress=progress)
    manifest = RunDirectory.open(out).manifest
    best, trained = manifest["best"], len(manifest.get("epochs", []))
    which = f"best epoch {best['epoch']} of {trained}, " if trained else ""
    values = ", ".join(f"{name} {value:.3f}" for name, value in best["metrics"].items())
    typer.echo(f"{model} is in {out}: {which}validation {values}")
    how = [] if cut == "last-events" else ["--split", cut]
    again = ["felrec", "evaluate", str(out), str(log), *how, *columns.as_arguments()]
    typer.echo(f"test it with: {shlex.join(again)}")
