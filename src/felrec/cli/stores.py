"""What the commands about stores have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from felrec.errors import ConfigError

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="The file of a store.")]


def require_extra() -> None:
    """Say what to install where the packages of the store are missing."""
    if find_spec("apsw") is None:
        raise ConfigError("stores need packages that are not installed; run pip install 'felrec[serve]'")


@contextmanager
def taking_in(label: str, events: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal: call it with the number of events taken in."""
    from felrec.cli.progress import event_bar

    with event_bar() as bar:
        task = bar.add_task(label, total=events, loss="")
        yield lambda done: bar.advance(task, done)


def run_of(run: Path | None, store: Path) -> Path:
    """The run that a store goes with: the one given, or the one whose directory it lies in."""
    if run is not None:
        return run
    if (store.absolute().parent / "manifest.json").is_file():
        return store.absolute().parent
    raise ConfigError(f"{store} does not lie in the directory of a run; name the run after the log")
