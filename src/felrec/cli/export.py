"""`felrec export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from felrec.cli.options import LogColumns, with_option_groups
from felrec.cli.stores import Namespace, StoreAddress, TrainingLog, require_extra
from felrec.errors import ConfigError


@with_option_groups
def export(
    store: StoreAddress,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Log to write: .parquet or .csv.")],
    log: TrainingLog = None,
    journal: Annotated[
        bool, typer.Option("--journal", help="Export only the journal, without the log of the run.")
    ] = False,
    namespace: Namespace = None,
    *,
    columns: LogColumns,
) -> None:
    """Export the events of a store as a log.

    The store may be in use by a service. Times are as submitted. Erased users are omitted. A store that started from a
    run holds only the events after it: pass the log of the run with --log to export both.

    \b
    Example:
      felrec export store.sqlite events.parquet
      felrec export runs/s/store.sqlite events.parquet --log old-events.parquet
      felrec train events.parquet --out runs/new
      felrec export postgresql://felrec@db/felrec events.parquet --namespace shop-a
    """  # noqa: D301
    require_extra()
    from felrec.service.maintenance.exporting import WRITERS, events_of
    from felrec.service.maintenance.replaying import check_log
    from felrec.store.opening import open_store

    if out.exists():
        raise ConfigError(f"{out} exists; give the log another name")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"{out}: there is no directory {out.parent}; create it, or choose another path")
    if out.suffix not in WRITERS:
        raise ConfigError(f"{out}: unknown extension; choose one of {', '.join(WRITERS)}")
    if journal and log is not None:
        raise ConfigError("give either --log LOG or --journal")
    first = columns.read(log) if log else None
    with open_store(store, "read", namespace=namespace) as opened:
        contents = opened.load()
    if not journal:
        check_log(contents, first)
    events = events_of(contents, first)
    WRITERS[out.suffix](events, out)
    typer.echo(f"{out}: {events.height:,} events of {events['user'].n_unique():,} users")
