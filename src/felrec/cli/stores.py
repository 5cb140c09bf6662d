"""What the commands about stores have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from felrec.errors import ConfigError, how_to_install

StoreFile = Annotated[Path, typer.Argument(metavar="STORE", help="The file of a store.")]


def require_extra() -> None:
    """Say what to install where the packages of the store are missing."""
    if find_spec("apsw") is None:
        raise ConfigError(f"stores need packages that are not installed; {how_to_install('serve')}")


@contextmanager
def taking_in(label: str, events: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal: call it with the number of events taken in."""
    from felrec.cli.progress import event_bar

    with event_bar() as bar:
        task = bar.add_task(label, total=events, loss="")
        yield lambda done: bar.advance(task, done)


def run_of(run: Path | None, store: Path) -> Path:
    """What a store goes with: the run given, the one whose directory it lies in, or else the shipped weights."""
    if run is not None:
        return run
    home = store.absolute().parent
    return home if (home / "manifest.json").is_file() else Path("pretrained")


def store_of(run: Path) -> Path:
    """Where the store of a run lies unless another place is given: in its directory, or here where it has none."""
    return run / "store.sqlite" if run.is_dir() else Path("store.sqlite")
