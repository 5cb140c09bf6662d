"""A map of users and one of items by t-SNE, coloured by how well each matches the other side of one interaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.data.split import Split
from felrec.errors import ConfigError, how_to_install
from felrec.evaluation.plots import new_figure, save_figure
from felrec.recommender import Queries, Recommender, Representing

INTERACTIONS = 10_000
PERPLEXITY = 30.0
TOP_SHARE = 0.1  # the pair is one whose item is among this share of the user's best
RED = "#E00000"
_AT_ONCE = 512


@dataclass(frozen=True)
class Side:
    """Users or items: where each lies, how well it matches, and which is the red dot."""

    points: NDArray[np.float64]  # (n, 2)
    match: NDArray[np.float64]  # (n,) between 0, the worst, and 1: the share of the others that match worse
    chosen: int


@dataclass(frozen=True)
class TasteMap:
    """Both sides."""

    users: Side
    items: Side

    def save(self, path: Path) -> None:
        """Write it as Parquet."""
        frames = [
            pl.DataFrame(
                {"x": side.points[:, 0], "y": side.points[:, 1], "match": side.match,
                 "chosen": np.arange(len(side.match)) == side.chosen}
            ).with_columns(side=pl.lit(name))
            for name, side in (("users", self.users), ("items", self.items))
        ]  # fmt: skip
        pl.concat(frames).write_parquet(path)

    @classmethod
    def load(cls, path: Path) -> TasteMap:
        """Read what `save` wrote."""
        frame = pl.read_parquet(path)
        sides = [frame.filter(pl.col("side") == name) for name in ("users", "items")]
        return cls(
            *(
                Side(part.select("x", "y").to_numpy(), part["match"].to_numpy(), int(part["chosen"].arg_max() or 0))
                for part in sides
            )
        )


def require_tsne() -> None:
    """Fail now, and not after hours of training."""
    try:
        import openTSNE  # noqa: F401
    except ImportError:
        raise ConfigError(f"maps need openTSNE; {how_to_install('plots')}") from None


def taste_map(model: Representing, split: Split, seed: int = 0) -> TasteMap:
    """Users and items of 10,000 interactions before the test, each placed once by its vector."""
    known = split.log[: split.validation_end]
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(len(known))[:INTERACTIONS]
    pairs = [(int(known.users[at]), int(known.items[at])) for at in drawn]
    users = np.unique(known.users[drawn])
    items = np.unique(known.items[drawn])
    items = items[model.item_vectors(items).any(dim=1).cpu().numpy()]  # those it can represent
    time = float(known.times[-1])
    user, item, matches = _pair(model, pairs, users, items, time)
    fits = np.concatenate(
        [
            model.score(Queries.now(users[at : at + _AT_ONCE], time), items[[item]])[:, 0].cpu().numpy()
            for at in range(0, len(users), _AT_ONCE)
        ]
    )
    return TasteMap(
        Side(_place(model.user_vectors(users).cpu().numpy(), seed), _places(fits), user),
        Side(_place(model.item_vectors(items).cpu().numpy(), seed), _places(matches), item),
    )


def _pair(
    model: Recommender, pairs: Sequence[tuple[int, int]], users: Rows, items: Rows, time: float
) -> tuple[int, int, NDArray[np.float64]]:
    """Where the red dots are, and the user's scores: the first interaction with an item of the user's best tenth."""
    known = [pair for pair in pairs if pair[1] in set(items.tolist())][:_AT_ONCE]
    asked = np.array([user for user, _ in known], dtype=np.int32)
    column = np.searchsorted(items, [item for _, item in known])
    scores = model.score(Queries.now(asked, time), items).double().cpu().numpy()
    better = (scores > scores[np.arange(len(known)), column][:, None]).mean(axis=1)
    at = int(np.argmax(better < TOP_SHARE))  # 0 if there is none
    return int(np.searchsorted(users, asked[at])), int(column[at]), scores[at]


def _places(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """From 0, the worst, to 1: colours show the order, whatever the scale of the scores."""
    order = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    return order / max(1, len(scores) - 1)


def _place(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    from openTSNE import TSNE

    perplexity = min(PERPLEXITY, max(2.0, (len(vectors) - 1) / 3))
    placed = TSNE(perplexity=perplexity, metric="cosine", n_jobs=1, random_state=seed).fit(vectors)
    return np.asarray(placed, dtype=np.float64)


def plot_maps(maps: dict[str, TasteMap], title: str, path: Path) -> None:
    """Users on the left, items on the right, a line for each model."""
    figure, every = new_figure(9.6, 0.9 + 4.2 * len(maps), rows=len(maps), columns=2, squeeze=False)
    for line, (name, found) in zip(every, maps.items(), strict=True):
        for axes, side, what in (
            (line[0], found.users, "users, bright: match the red item"),
            (line[1], found.items, "items, bright: match the red user"),
        ):
            order = np.argsort(side.match)  # the best on top
            x, y = side.points[order].T
            size = float(np.clip(12_000 / len(order), 3, 20))
            axes.scatter(x, y, c=side.match[order], cmap="viridis", s=size, linewidth=0, rasterized=True)
            axes.scatter(*side.points[side.chosen], color=RED, edgecolor="white", s=70, zorder=3)
            axes.set_title(f"{name}: {len(order):,} {what}", fontsize=9, loc="left")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set(visible=True, color="#CCCCCC")
    bar = figure.colorbar(every[0][0].collections[0], ax=every, shrink=0.5, pad=0.01)
    bar.set_label("share of the others that match worse", fontsize=8)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)
