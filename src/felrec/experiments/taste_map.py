"""t-SNE maps of users and items, coloured by their match with the other side of one interaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from felrec.abilities import Representing
from felrec.data.events import Rows
from felrec.data.lazy_polars import pl
from felrec.data.split import Split
from felrec.errors import ConfigError, how_to_install
from felrec.evaluation.plots import new_figure, save_figure
from felrec.recommender import Queries, Recommender

INTERACTIONS = 10_000
PERPLEXITY = 30.0
TOP_SHARE = 0.1  # the item of the red pair is within this share of the user's ranking
RED = "#E00000"
_AT_ONCE = 512


@dataclass(frozen=True)
class Side:
    """Users or items: their positions, their match, and the index of the red dot."""

    points: NDArray[np.float64]  # (n, 2)
    match: NDArray[np.float64]  # (n,) from 0 (worst) to 1: share of the others that match worse
    chosen: int


@dataclass(frozen=True)
class TasteMap:
    """The maps of users and of items."""

    users: Side
    items: Side

    def save(self, path: Path) -> None:
        """Write both maps to a Parquet file."""
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
    """Raise an error before hours of training if openTSNE is missing."""
    try:
        import openTSNE  # noqa: F401
    except ImportError:
        raise ConfigError(f"maps need openTSNE; {how_to_install('plots')}") from None


def taste_map(model: Representing, split: Split, seed: int = 0) -> TasteMap:
    """Map the users and items of 10,000 random interactions before the test, each once."""
    known = split.log[: split.validation_end]
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(len(known))[:INTERACTIONS]
    pairs = [(int(known.users[at]), int(known.items[at])) for at in drawn]
    users = np.unique(known.users[drawn])
    items = np.unique(known.items[drawn])
    items = items[model.item_vectors(items).any(dim=1).cpu().numpy()]  # only items the model can represent
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
    """Choose the red pair: the first interaction whose item is in the user's top tenth; also the user's scores."""
    known = [pair for pair in pairs if pair[1] in set(items.tolist())][:_AT_ONCE]
    asked = np.array([user for user, _ in known], dtype=np.int32)
    column = np.searchsorted(items, [item for _, item in known])
    scores = model.score(Queries.now(asked, time), items).double().cpu().numpy()
    better = (scores > scores[np.arange(len(known)), column][:, None]).mean(axis=1)
    at = int(np.argmax(better < TOP_SHARE))  # 0 if there is no such pair
    return int(np.searchsorted(users, asked[at])), int(column[at]), scores[at]


def _places(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Ranks from 0 (worst) to 1: colours show the order, because score scales differ between models."""
    order = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    return order / max(1, len(scores) - 1)


def _place(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    from openTSNE import TSNE

    perplexity = min(PERPLEXITY, max(2.0, (len(vectors) - 1) / 3))
    placed = TSNE(perplexity=perplexity, metric="cosine", n_jobs=1, random_state=seed).fit(vectors)
    return np.asarray(placed, dtype=np.float64)


def plot_maps(maps: dict[str, TasteMap], title: str, path: Path) -> None:
    """Plot one row per model: users on the left, items on the right."""
    figure, every = new_figure(9.6, 0.9 + 4.2 * len(maps), rows=len(maps), columns=2, squeeze=False)
    for line, (name, found) in zip(every, maps.items(), strict=True):
        for axes, side, what in (
            (line[0], found.users, "users, brighter: better match with the red item"),
            (line[1], found.items, "items, brighter: better match with the red user"),
        ):
            order = np.argsort(side.match)  # draw the best last, on top
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
