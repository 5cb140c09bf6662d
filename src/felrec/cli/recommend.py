"""`felrec recommend`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from felrec.cli.options import Device, Run
from felrec.errors import ConfigError

if TYPE_CHECKING:
    from felrec.fitted import Scored


def recommend(
    run: Run,
    user: Annotated[str | None, typer.Option("--user", metavar="U", help="Recommend items to this user.")] = None,
    item: Annotated[
        str | None, typer.Option("--item", metavar="I", help="Find users for this item, and similar items.")
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="K", min=1, help="Number of results.")] = 10,
    device: Device = "cpu",
) -> None:
    """Recommend items to a user, or find users for an item.

    Uses the state of the run after validation. Events ingested later, by felrec import or over HTTP, are in the store:
    query felrec serve to use them.

    \b
    Example:
      felrec recommend runs/q --user 42 -k 5
      felrec recommend runs/q --item 1193
    """  # noqa: D301
    if (user is None) == (item is None):
        raise ConfigError("give either --user U or --item I")
    from felrec import runs

    model = runs.load(run, device=device)
    if not len(model.item_ids):
        raise ConfigError(
            f"{run} has no items; to recommend from the events of a store, start felrec serve and query it over HTTP"
        )
    if user is not None:
        if model.user_ids.rows([user])[0] < 0:
            typer.echo(f"user {user} has no events yet; these are the recommendations for a new user", err=True)
        _print("item", model.recommend(user, k))
    elif item is not None:
        audience, similar = model.audience(item, k), model.similar_items(item, k)
        typer.echo(f"users to show item {item} to")
        _print("user", audience)
        typer.echo(f"\nitems similar to {item}")
        _print("item", similar)


def _print(kind: str, best: Sequence[Scored]) -> None:
    from felrec.cli.tables import print_table

    rows = [(str(place), str(entry.id), f"{entry.score:.3f}") for place, entry in enumerate(best, start=1)]
    print_table(("", kind, "score"), rows, left=2)
