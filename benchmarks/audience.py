"""How well the audience of an item is ordered: `python benchmarks/audience.py LOG [--newest N] [--events 6000]`.

For each validation event whose user did not have the item lately: the share of the other users of the same 256 events,
who did not take the item, that are ranked below the user who did (the area under the ROC curve; .5 is chance). Weights
are trained on the training part, with the signal `vectors`, so that their cosine can be compared too.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F  # noqa: N812

import felrec
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.data.split import split_log
from felrec.evaluation.protocols import replay
from felrec.model.counted_vectors import CountedVectors
from felrec.model.felrec_s import FELRecS
from felrec.model.felrec_s_settings import DEFAULT_SIGNALS
from felrec.recommender import Queries

BLOCK = 256
Scores = NDArray[np.floating]  # (users, items)


def ways(model: FELRecS, users: Rows, items: Rows, now: float) -> dict[str, Scores]:
    """Match of users and items, by what it is computed from."""
    signals = model.signals
    assert signals.together is not None
    assert signals.vectors is not None
    counted = CountedVectors(signals.together, signals.recent)
    encoded_users = F.normalize(signals.vectors.users.read(users), dim=1)
    encoded_items = F.normalize(signals.vectors.items.read(items), dim=1)
    return {
        "score": model.score(Queries.now(users, now), items).numpy(),
        "cosine of counted vectors": (counted.of_users(users) @ counted.of_items(items).T).numpy(),
        "cosine of encoded vectors": (encoded_users @ encoded_items.T).numpy(),
    }


def areas(model: FELRecS, block: Events) -> dict[str, list[float]]:
    """For each way, the area of each event that counts."""
    recent = model.signals.recent
    users, items = np.unique(block.users), np.unique(block.items)
    users, items = users[recent.users.counts(users) > 0], items[recent.items.counts(items) > 0]
    found = ways(model, users, items, float(block.times[0])) if len(users) and len(items) else {}
    taken = np.isin(_keys(users[:, None], items), _keys(block.users, block.items))
    had, _ = recent.items.recent(items, Pending.none(len(items)))
    areas: dict[str, list[float]] = {name: [] for name in found}
    for user, item in np.argwhere(taken):
        others = ~taken[:, item]
        if others.any() and users[user] not in had[item]:
            for name, scores in found.items():
                mine, theirs = scores[user, item], scores[others, item]
                areas[name].append(float((theirs < mine).mean() + (theirs == mine).mean() / 2))
    return areas


def _keys(users: Rows, items: Rows) -> NDArray[np.int64]:
    """One number for each user and item."""
    return users.astype(np.int64) << 32 | items


def main() -> None:
    """Print one row per way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("--newest", type=int)
    parser.add_argument("--events", type=int, default=6_000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    split = split_log(felrec.read_log(given.log, newest=given.newest))
    model = felrec.fit(split, signals=[*DEFAULT_SIGNALS, "vectors"]).recommender
    assert isinstance(model, FELRecS)
    model.reset()
    replay(model, split.train)
    found: dict[str, list[float]] = {}
    for block in split.validation[: given.events].blocks(BLOCK):
        for name, some in areas(model, block).items():
            found.setdefault(name, []).extend(some)
        model.observe(block)
    for name, every in found.items():
        print(f"{name}\t{np.mean(every):.3f}\t{len(every):,} events")


if __name__ == "__main__":
    main()
