"""A log as the visitors of a shop: what its users would have clicked, of the model's lists and of trending items.

    felrec serve --ab-trending 0.5 --port 8000 &
    python benchmarks/ab.py LOG http://127.0.0.1:8000 [--before 60000] [--events 4000]

The events before the last ones are posted first. Then, for each of the last events, its user is shown a list of ten and
"clicks" the item of the event if it is in the list; the event is posted afterwards. Prints what /v1/stats says.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

from machine import describe

import felrec
from felrec.client import Client
from felrec.client.feedback import Report


def main() -> None:
    """Post the past, then visit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("url")
    parser.add_argument("--before", type=int, default=60_000)
    parser.add_argument("--events", type=int, default=4_000)
    chosen = parser.parse_args()
    log = felrec.read_log(chosen.log, newest=chosen.before + chosen.events)
    users, items = map(str, log.user_ids.ids(log.users)), map(str, log.item_ids.ids(log.items))
    rows = list(zip(users, items, log.times.tolist(), strict=True))
    with Client(chosen.url) as shop:
        shop.record(rows[: -chosen.events])
        for user, item, time in rows[-chosen.events :]:
            found = shop.recommend(user, 10)
            names = [one.id for one in found.items]
            reports: list[Report] = [(str(found.ticket), "impression")]
            if item in names:
                reports.append((str(found.ticket), "click", names.index(item)))
            shop.report(reports)
            shop.record([(user, item, time)])
        told = shop.stats()["feedback"]
    print(f"{date.today()}, {describe()['cpu']}; {chosen.log.name}, the last {chosen.events:,} events")
    for arm in told["arms"]:
        share = arm["lists"]
        print(f"{arm['arm']}: {share['clicked']:,} of {share['of']:,} lists with a click, {_with_interval(share)}")
    if between := told["difference"]:
        print(f"model minus trending: {between['value']:.3f} ({between['low']:.3f} to {between['high']:.3f})")


def _with_interval(share: dict[str, float]) -> str:
    return f"{share['share']:.3f} ({share['low']:.3f} to {share['high']:.3f})"


if __name__ == "__main__":
    main()
