"""`felrec replay`."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felrec.cli.follow import keep_up
from felrec.cli.options import Device, LogColumns, with_option_groups
from felrec.cli.stores import Namespace, StoreAddress, TrainingLog, require_extra, shown
from felrec.errors import ConfigError

if TYPE_CHECKING:
    from felrec.data.log import InteractionLog
    from felrec.store.location import StoreLocation
    from felrec.store.protocol import Contents, SharedStore


@with_option_groups
def replay(
    store: StoreAddress,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="Run whose weights the new store gets; default: a copy of the store as it is."
        ),
    ] = None,
    *,
    out: Annotated[
        str, typer.Option("--out", metavar="NEW", help="The new store: a file that does not exist, or postgresql://….")
    ],
    log: TrainingLog = None,
    latest: Annotated[
        datetime | None,
        typer.Option(
            "--latest", metavar="TIME", help="UTC; events with a later time get that of the newest event before them."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="OLD=NEW",
            help="Give events another weight: '3=5,context=0.5,negative=ignore'; others stay as they are.",
        ),
    ] = None,
    namespace: Namespace = None,
    new_namespace: Annotated[
        str | None,
        typer.Option("--out-namespace", metavar="NAME", help="The namespace of the new store, default: the same."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Then keep NEW as new as STORE, until felrec switch or Ctrl-C.")
    ] = False,
    device: Device = "cpu",
    columns: LogColumns,
) -> None:
    """Rebuild a store with the weights of another run, or move it to another place.

    With a run, the journal of the old store is replayed with its weights. Without one, everything is copied as it is,
    also from a file to PostgreSQL or back: events, ids, items, receipts and the state, bit by bit.

    The old store is only read and may be in use by a service. The new store appears once it is complete; an attempt
    that was killed is removed by the next one.

    With --follow it then applies the events that arrive, so that felrec switch can move a service to the new store
    without a stop. A service on a file must run with --processes or --shared. The same command goes on after Ctrl-C.

    --latest corrects the times of events that were stored while the machine's clock was ahead.

    --weights is for a table of kinds that changed: a store keeps what events are worth, not their kinds.

    \b
    Example:
      felrec replay runs/q/store.sqlite runs/better --out runs/better/store.sqlite --log events.parquet
      felrec replay store.sqlite runs/better --out new.sqlite --follow
      felrec replay postgresql://db/felrec runs/better --out postgresql://db/felrec --out-namespace better --follow
      felrec replay store.sqlite pretrained --out corrected.sqlite --latest 2026-11-17T12:00:00
      felrec replay store.sqlite pretrained --out new.sqlite --weights '3=5,context=0.5'
      felrec replay store.sqlite --out postgresql://felrec@db/felrec --namespace shop-a
      felrec replay postgresql://felrec@db/felrec --namespace shop-a --out store.sqlite
    """  # noqa: D301
    if run is None and (log or latest or weights):
        raise ConfigError(
            "--log, --latest and --weights need the run whose weights the new store gets; give its directory"
        )
    require_extra()
    from felrec.service.maintenance.rewriting import store_at
    from felrec.store.location import StoreLocation
    from felrec.store.opening import is_address, open_store

    here = namespace if is_address(store) or not is_address(out) else None
    there = new_namespace or (namespace if is_address(out) else None)
    if follow:
        if run is None or latest or weights:
            raise ConfigError("--follow needs the run whose weights the new store gets, and cannot change events")
        both = StoreLocation.of(store, here), StoreLocation.of(out, there)
        _follow(*both, run, columns.read(log) if log else None, device)
        return
    with store_at(out, there) as new:
        with open_store(store, "read", namespace=here) as old:
            contents = old.load()
        if run is None:
            done = _copy(contents, new)
        else:
            base = columns.read(log) if log else None
            done = _replay(contents, new, run, base, device, latest, weights)
    typer.echo(f"{shown(out, there)}: {done}")


def _copy(contents: Contents, new: SharedStore) -> str:
    from felrec.cli.progress import counting_bar
    from felrec.service.maintenance.copying import copy_store

    with counting_bar("copying the journal", len(contents.events)) as progress:
        copy_store(contents, new, progress)
    users, items = (sum(name is not None for name in ids) for ids in (contents.users, contents.items))
    return f"copied as it is, with {len(contents.events):,} events of the journal, {users:,} users, {items:,} items"


def _replay(
    contents: Contents,
    new: SharedStore,
    run: Path,
    base: InteractionLog | None,
    device: str,
    latest: datetime | None = None,
    weights: str | None = None,
) -> str:
    from felrec import runs
    from felrec.cli.progress import counting_bar
    from felrec.data.reweighing import Reweighing
    from felrec.service.maintenance.replaying import events_to_replay, replay_store

    model = runs.load(run, device=device)
    no_later = latest.replace(tzinfo=UTC).timestamp() if latest else inf
    other = Reweighing.parse(weights) if weights else None
    with counting_bar("replaying the journal", events_to_replay(contents, base)) as progress:
        replay_store(contents, model, new, base, progress, no_later, other)
    return f"{len(new.load().events):,} events replayed with {model.name} of {run}"


def _follow(old: StoreLocation, new: StoreLocation, run: Path, base: InteractionLog | None, device: str) -> None:
    from felrec import runs
    from felrec.service.maintenance.keeping_up import begin_to_follow
    from felrec.service.maintenance.rewriting import store_at

    if not new.exists:
        with store_at(new.address, new.namespace) as filled:
            with old.open("read") as store:
                contents = store.load()
            contents.inbox.clear()  # the service is about to do it: it comes as a change
            done = _replay(contents, filled, run, base, device)
            begin_to_follow(filled, contents, old.name)
        typer.echo(f"{new.name}: {done}")
    keep_up(old, new, runs.load(run, device=device))
