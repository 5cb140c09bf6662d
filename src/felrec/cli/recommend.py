"""`felrec recommend`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from felrec.cli.options import Device, Run, resumable, with_option_groups
from felrec.errors import ConfigError

if TYPE_CHECKING:
    from felrec.fitted import FittedModel, Scored


@dataclass(frozen=True)
class ManyUsers:
    """The options for the recommendations of many users."""

    every: Annotated[bool, typer.Option("--all", help="Recommend items to every user of the run, into --out.")] = False
    users: Annotated[
        Path | None,
        typer.Option(
            metavar="F", help="Recommend items to the users of a file, into --out: one id per line, or a column."
        ),
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="F", help="File for many users, Parquet or CSV: user, place, item, score.")
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(metavar="3/16", help="Only this part of the users; felrec merge-recs joins all parts."),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether many users were asked for."""
        return self.every or self.users is not None


@with_option_groups
def recommend(
    run: Run,
    user: Annotated[str | None, typer.Option("--user", metavar="U", help="Recommend items to this user.")] = None,
    item: Annotated[
        str | None, typer.Option("--item", metavar="I", help="Find users for this item, and similar items.")
    ] = None,
    *,
    many: ManyUsers,
    k: Annotated[int, typer.Option("-k", metavar="K", min=1, help="Number of results.")] = 10,
    exclude_seen: Annotated[
        Literal["auto", "yes", "no"],
        typer.Option(help="Exclude items the user already had; auto: as the model was trained."),
    ] = "auto",
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Recommend only the items of a file: one id per line, or a column."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    device: Device = "cpu",
) -> None:
    """Recommend items to a user, to a list of users or to all, or find users for an item.

    Uses the state of the run after validation. Events ingested later, by felrec import or over HTTP, are in the store:
    query felrec serve to use them. After an interruption the same command continues a file of many users.

    \b
    Example:
      felrec recommend runs/q --user 42 -k 5
      felrec recommend runs/q --user 42 --json
      felrec recommend runs/q --item 1193
      felrec recommend runs/q --all -k 10 --out recs.parquet
      felrec recommend runs/q --users vips.txt --candidates on-sale.csv --out recs.csv
      felrec recommend runs/q --all --out recs.parquet --shard 3/16
    """  # noqa: D301
    _check(user, item, many, exclude_seen, candidates, as_json)
    from felrec import runs
    from felrec.data.reading.id_lists import read_id_list

    model = runs.load(run, device=device)
    if not len(model.item_ids):
        raise ConfigError(
            f"{run} has no items; to recommend from the events of a store, start felrec serve and query it over HTTP"
        )
    seen = None if exclude_seen == "auto" else exclude_seen == "yes"
    only = None if candidates is None else read_id_list(candidates, "item").to_list()
    if only is not None and (model.item_ids.rows(only) < 0).all():
        raise ConfigError(f"--candidates {candidates}: the model knows none of these {len(only):,} items")
    if many.wanted:
        _recommend_to_many(model, run, many, k, seen, only)
    elif user is not None:
        if model.user_ids.rows([user])[0] < 0:
            typer.echo(f"user {user} has no events yet; these are the recommendations for a new user", err=True)
        best = model.recommend(user, k, exclude_seen=seen, candidates=only)
        _show({"items": best}, {"items": ""}, as_json, {"user": user})
    elif item is not None:
        found = {"users": model.audience(item, k), "items": model.similar_items(item, k)}
        titles = {"users": f"users to show item {item} to", "items": f"\nitems similar to {item}"}
        _show(found, titles, as_json, {"item": item})


def _check(
    user: str | None, item: str | None, many: ManyUsers, exclude_seen: str, candidates: Path | None, as_json: bool
) -> None:
    if sum((user is not None, item is not None, many.every, many.users is not None)) != 1:
        raise ConfigError("give one of --user U, --item I, --all or --users F")
    if many.wanted and many.out is None:
        raise ConfigError("--all and --users write a file; give its name with --out recs.parquet")
    if not many.wanted and many.out is not None:
        raise ConfigError("--out is for --all and --users; for one user, redirect the output of --json")
    if not many.wanted and many.shard is not None:
        raise ConfigError("--shard is for --all and --users; omit it for one user or item")
    if many.wanted and as_json:
        raise ConfigError("--json is for one user or item; --out writes Parquet or CSV")
    if item is not None and (exclude_seen != "auto" or candidates is not None):
        raise ConfigError("--exclude-seen and --candidates are about items for users; omit them with --item")


def _recommend_to_many(
    model: FittedModel, run: Path, many: ManyUsers, k: int, seen: bool | None, only: Sequence[int | str] | None
) -> None:
    import hashlib

    from felrec.batch import BatchJob, Shard, check_output
    from felrec.cli.progress import counting_bar
    from felrec.data.reading.id_lists import read_id_list
    from felrec.training.checkpoint import MANIFEST

    assert many.out is not None
    check_output(many.out)
    users = model.user_ids.series if many.users is None else read_id_list(many.users, "user")
    source = hashlib.sha256((run / MANIFEST).read_bytes()).hexdigest()
    shard = Shard.read(many.shard or "1/1")
    out, job = shard.file(many.out), BatchJob(model, source, users, k, seen, only, shard)
    users = shard.of(users)
    with resumable(""), counting_bar("recommending", len(users), "users") as progress:
        rows = job.run(many.out, progress)
    new = int((model.user_ids.rows(users) < 0).sum())
    note = f"; {new:,} of them have no events, so they get what a new user gets" if new else ""
    typer.echo(f"wrote {rows:,} recommendations for {len(users):,} users to {out}{note}")


def _show(found: dict[str, list[Scored]], titles: dict[str, str], as_json: bool, about: dict[str, str]) -> None:
    if as_json:
        lists = {kind: [one._asdict() for one in best] for kind, best in found.items()}
        json.dump({**about, **lists}, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
        return
    for kind, best in found.items():
        if titles[kind]:
            typer.echo(titles[kind])
        _print(kind.removesuffix("s"), best)


def _print(kind: str, best: Sequence[Scored]) -> None:
    from felrec.cli.tables import print_table

    rows = [(str(place), str(entry.id), f"{entry.score:.3f}") for place, entry in enumerate(best, start=1)]
    print_table(("", kind, "score"), rows, left=2)
