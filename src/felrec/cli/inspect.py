"""`felrec inspect`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from felrec.cli.options import Log, LogColumns, with_option_groups

_NEGATIVE = ("dislike", "downvote", "hide")  # kinds of events that hardly mean anything else


@with_option_groups
def inspect_log(
    log: Log,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    *,
    columns: LogColumns,
) -> None:
    """Summarise a log.

    Shows rows, users, items, time span, history lengths, repeats, ties, the share of each partition, and
    kinds and values of events if there are any; with --kinds also what they are worth.

    \b
    Example:
      felrec inspect ratings.csv --user-col userId --item-col movieId
      felrec inspect shop.parquet --where 'kind=purchase'
      felrec inspect shop.parquet --kinds 'view=context,purchase=1,dislike=negative'
    """  # noqa: D301
    from felrec.data.summary import inspect

    about = inspect(columns.read(log))
    if as_json:
        typer.echo(json.dumps(about, indent=2))
        return
    width = max(len(label) for label, _ in _lines(about))
    for label, value in _lines(about):
        typer.echo(f"{label:<{width}}  {value}")


def _lines(about: dict[str, Any]) -> list[tuple[str, str]]:
    from felrec.evaluation.text import share

    def lengths(of: dict[str, float]) -> str:
        return f"median {of['median']:,.0f}, 90th percentile {of['90%']:,.0f}, maximum {of['max']:,}"

    return [
        ("rows", f"{about['rows']:,}"),
        ("users", f"{about['users']:,}"),
        ("items", f"{about['items']:,}"),
        ("span", f"{about['first']} to {about['last']} ({about['span_days']:,.1f} days)"),
        ("events per user", lengths(about["user_history"])),
        ("events per item", lengths(about["item_history"])),
        ("repeated pairs", f"{share(about['repeated_pairs'])} of the events"),
        ("ties", f"{share(about['ties'])} of the events have the same time as the one before; log order is kept"),
        *(
            (f"test: {partition.replace('_', ' ')}", f"{share(value)} of the events")
            for partition, value in about["test_partitions"].items()
        ),
        *_details(about),
    ]


def _details(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Kinds and values, which mean nothing unless the user says so."""
    from felrec.evaluation.text import share

    lines, kinds, values, worth = [], about["kinds"], about["values"], about["worth"]
    if kinds:
        shown = ", ".join(f"{kind or 'missing'} {share(part)}" for kind, part in list(kinds["shares"].items())[:8])
        lines.append((f"kinds ({kinds['column']})", shown))
        if len(kinds["shares"]) > 1 and not worth:
            lines.append(("", f"all count alike; choose with --where '{kinds['column']}={_rarest(kinds['shares'])}'"))
            lines.append(("", f"or say what they mean, as in --kinds '{_table(list(kinds['shares']))}'"))
    if values:
        shown = f"{values['lowest']:,g} to {values['highest']:,g}, median {values['median']:,g}"
        lines.append((f"values ({values['column']})", shown))
        if values["lowest"] < values["highest"] and not worth:
            median = f"{values['median']:g}"
            lines.append(("", f"all count alike; choose with --where '{values['column']}>={median}'"))
            lines.append(("", f"or say what they mean, as in --kinds 'value<{median}=0.5'"))
    if worth:
        lines.append(("worth", ", ".join(f"{meaning} {share(part)}" for meaning, part in worth.items())))
    return lines


def _rarest(shares: dict[str, float]) -> str:
    """The kind that most likely is what a shop wants more of: the rarest, but not one that speaks against an item."""
    wanted = [kind for kind in shares if kind and kind.lower() not in _NEGATIVE]
    return min(wanted or shares, key=lambda kind: shares[kind])


def _table(kinds: list[str]) -> str:
    """A table of kinds to begin with: the most frequent kind is context, what sounds so is negative, others count."""
    named = [kind for kind in kinds if kind and not set(kind) & set(",=<>'")][:8]
    rest = (f"{kind}={'negative' if kind.lower() in _NEGATIVE else 1}" for kind in named[1:])
    return ",".join((f"{named[0]}=context", *rest)) if named else "*=1"
