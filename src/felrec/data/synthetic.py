"""Synthetic logs with known tastes: users prefer items of their taste, and items appear and disappear."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows, Times
from felrec.data.lazy_polars import pl
from felrec.data.log import InteractionLog
from felrec.data.numbering import by_first_appearance
from felrec.data.vocabulary import Vocabulary
from felrec.errors import ConfigError

_START = 1_600_000_000.0
_SPAN = 90 * 86_400.0
_SLICES = 256  # popularity is constant within a slice of time


@dataclass(frozen=True, eq=False)
class SyntheticLog:
    """A log and the parameters that generated it, aligned with its rows of users and items."""

    log: InteractionLog
    user_taste: Rows  # (users,)
    item_taste: Rows  # (items,)
    item_birth: Times  # (items,) seconds
    item_death: Times  # (items,) seconds, infinite for items that outlive the log


@dataclass(frozen=True)
class _World:
    user_taste: Rows
    user_joined: Times
    user_weight: NDArray[np.float64]
    item_taste: Rows  # ascending, so that the items of a taste are contiguous
    item_birth: Times
    item_death: Times
    item_weight: NDArray[np.float64]
    item_phase: NDArray[np.float64]
    drift: float
    taste_strength: float


def synthetic_log(
    n_events: int,
    *,
    n_users: int = 1_000,
    n_items: int = 500,
    tastes: int = 8,
    taste_strength: float = 0.9,
    birth_share: float = 0.5,
    lifetime: float = 0.5,
    drift: float = 1.0,
    repeat_share: float = 0.1,
    basket: float = 1.0,
    seed: int = 0,
) -> SyntheticLog:
    """Generate a log of `n_events` over 90 days.

    Activity and popularity follow Zipf's law. A share `birth_share` of the users and of the items appears only after
    the start. An item lives for `lifetime` on average (as a share of the span) and has no events after that. An event
    has an item of the user's own taste with probability `taste_strength`, else any item. Popularity varies by
    `drift` standard deviations of its logarithm over the span. About `repeat_share` of the events repeat one of the
    user's earlier items (fewer where the item has died; random repeats are extra). Events form baskets of one user
    and one time, of `basket` events on average, which repeat only items of earlier baskets.

    >>> made = synthetic_log(5_000, seed=1)
    >>> own = made.user_taste[made.log.users] == made.item_taste[made.log.items]
    >>> len(made.log), bool(own.mean() > 0.85)
    (5000, True)
    """
    if n_events < 1 or n_users < 2 or not 1 <= tastes <= n_items:
        raise ConfigError("a synthetic log needs an event, two users, and at least one item for each taste")
    rng = np.random.default_rng(seed)
    world = _make_world(rng, n_users, n_items, tastes, taste_strength, birth_share, lifetime, drift)
    times = np.sort(rng.random(n_events)) * _SPAN + _START
    if basket > 1:
        begins = np.flatnonzero(rng.random(n_events) < 1 / basket)
        times = times[_latest(begins, n_events)]
    users, items = _draw(rng, world, times)
    if repeat_share > 0:
        _repeat(rng, users, items, times, world.item_death, repeat_share)
    return _numbered(world, users, items, times)


def _make_world(
    rng: np.random.Generator,
    n_users: int,
    n_items: int,
    tastes: int,
    taste_strength: float,
    birth_share: float,
    lifetime: float,
    drift: float,
) -> _World:
    joined = np.where(rng.random(n_users) < birth_share, rng.random(n_users), 0.0)
    joined[-2:] = 0.0
    taste = np.sort(np.arange(n_items, dtype=np.int32) % tastes)
    birth = np.where(rng.random(n_items) < birth_share, rng.random(n_items), 0.0)
    death = birth + rng.exponential(lifetime, n_items)
    weight = _zipf(rng, n_items, 1.0)
    # One item of each taste lives throughout, so that no slice is without items.
    lasting = np.searchsorted(taste, np.arange(tastes))
    birth[lasting], death[lasting], weight[lasting] = 0.0, np.inf, weight.min()
    return _World(
        user_taste=rng.integers(tastes, size=n_users, dtype=np.int32),
        user_joined=joined * _SPAN + _START,
        user_weight=_zipf(rng, n_users, 0.8),
        item_taste=taste,
        item_birth=birth * _SPAN + _START,
        item_death=np.where(death > 1.0, np.inf, death * _SPAN + _START),
        item_weight=weight,
        item_phase=rng.random(n_items),
        drift=drift,
        taste_strength=taste_strength,
    )


def _zipf(rng: np.random.Generator, n: int, exponent: float) -> NDArray[np.float64]:
    return rng.permutation(np.arange(1, n + 1, dtype=np.float64)) ** -exponent


def _draw(rng: np.random.Generator, world: _World, times: Times) -> tuple[Rows, Rows]:
    users, items = np.empty(len(times), np.int32), np.empty(len(times), np.int32)
    cuts = np.linspace(0, len(times), min(_SLICES, len(times)) + 1).astype(np.int64)
    for start, stop in pairwise(cuts):
        first, last = times[start], times[stop - 1]
        joined = np.where(world.user_joined <= first, world.user_weight, 0.0)
        users[start:stop] = _pick(rng, np.cumsum(joined), stop - start)
        users[start:stop] = users[start:stop][_same_time(times[start:stop])]
        # Alive from the slice's first event to its last, so that no event is outside its item's lifetime.
        alive = (world.item_birth <= first) & (world.item_death >= last)
        swing = np.sin(2 * np.pi * ((first - _START) / _SPAN + world.item_phase))
        weights = np.where(alive, world.item_weight * np.exp(world.drift * np.sqrt(2) * swing), 0.0)
        items[start:stop] = _pick_items(rng, world, np.cumsum(weights), users[start:stop])
    return users, items


def _latest(places: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """For each index, the last of the ascending `places` that is not after it; 0 before the first."""
    marks = np.zeros(length, dtype=np.int64)
    marks[places] = places
    return np.maximum.accumulate(marks)


def _same_time(times: Times) -> NDArray[np.int64]:
    """For each event, the first event with the same time."""
    return _latest(np.flatnonzero(np.diff(times, prepend=-np.inf)), len(times))


def _pick(rng: np.random.Generator, cumulated: NDArray[np.float64], n: int) -> Rows:
    return _at(cumulated, rng.random(n), np.zeros(n), np.full(n, cumulated[-1]))


def _pick_items(rng: np.random.Generator, world: _World, cumulated: NDArray[np.float64], users: Rows) -> Rows:
    """Draw an item of the user's own taste or of any: a taste is a range of the cumulated weights."""
    edges = np.concatenate([[0.0], cumulated])
    taste = world.user_taste[users]
    low = edges[np.searchsorted(world.item_taste, taste, side="left")]
    high = edges[np.searchsorted(world.item_taste, taste, side="right")]
    own = rng.random(len(users)) < world.taste_strength
    return _at(cumulated, rng.random(len(users)), np.where(own, low, 0.0), np.where(own, high, cumulated[-1]))


def _at(
    cumulated: NDArray[np.float64],
    fraction: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> Rows:
    # Rounding may reach `high`, which belongs to the next entry.
    points = np.minimum(low + fraction * (high - low), np.nextafter(high, low))
    return np.searchsorted(cumulated, points, side="right").astype(np.int32)


def _repeat(
    rng: np.random.Generator, users: Rows, items: Rows, times: Times, death: Times, repeat_share: float
) -> None:
    """Replace the items of a share of the events by an earlier item of the same user, in place."""
    n = len(users)
    order = np.argsort(users, kind="stable")
    counts = np.bincount(users)
    begin = np.repeat(np.cumsum(counts) - counts, counts)  # start of the user's events, in that order
    place = np.arange(n)
    basket = np.maximum(begin, _same_time(times[order]))  # start of the basket: only earlier items may be repeated
    source = begin + (rng.random(n) * (basket - begin)).astype(np.int64)
    source = np.where((rng.random(n) < repeat_share) & (basket > begin), source, place)
    # Resolve copies of copies to the original; each round halves the chains.
    while not np.array_equal(source, further := source[source]):
        source = further
    own = items[order]
    copied = own[source]
    # An event whose copied item has died keeps its own draw.
    items[order] = np.where(death[copied] >= times[order], copied, own)


def _numbered(world: _World, users: Rows, items: Rows, times: Times) -> SyntheticLog:
    user_rows, user_ids = by_first_appearance(users, len(world.user_taste))
    item_rows, item_ids = by_first_appearance(items, len(world.item_taste))
    vocabularies = Vocabulary(pl.Series(user_ids)), Vocabulary(pl.Series(item_ids))
    return SyntheticLog(
        InteractionLog(Events(user_rows, item_rows, times), *vocabularies),
        user_taste=world.user_taste[user_ids],
        item_taste=world.item_taste[item_ids],
        item_birth=world.item_birth[item_ids],
        item_death=world.item_death[item_ids],
    )
