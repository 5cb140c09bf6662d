"""Shared code of the commands that work on a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from felrec.errors import ConfigError, how_to_install

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="File of the store.")]


def require_extra() -> None:
    """Raise an error that says what to install if a package of the store is missing."""
    if find_spec("apsw") is None:
        raise ConfigError(f"stores need packages that are not installed; {how_to_install('serve')}")


@contextmanager
def ingest_bar(label: str, events: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; the function it yields advances the bar by a number of events."""
    from felrec.cli.progress import event_bar

    with event_bar() as bar:
        task = bar.add_task(label, total=events, loss="")
        yield lambda done: bar.advance(task, done)


def run_of(run: Path | None, store: Path) -> Path:
    """The run of a store: the one given, the one whose directory holds the store, or the bundled weights."""
    if run is not None:
        return run
    home = store.absolute().parent
    return home if (home / "manifest.json").is_file() else Path("pretrained")


def store_of(run: Path) -> Path:
    """Default path of a store: in the run's directory, or in the current one if the run has no directory."""
    return run / "store.sqlite" if run.is_dir() else Path("store.sqlite")
