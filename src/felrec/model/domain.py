"""What kind of log this is, as the events tell it: whether people come back, repeat, follow others, how fast it turns.

A handful of running means, so that the same weights can behave differently on a news site and in a shop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange
from felrec.model.horizons import HALF_LIVES, Floats, Horizons

_HALF_LIFE = 5_000  # of the running means, in events
_LEAST = 1e-3  # of an event: what an item without events is taken to weigh
_SHARPNESS = 2.0

FEATURES = 7


class Domain:
    """Running means over events: of features, and of how well each horizon of popularity foretold the item.

    What is shown of them moves on with the horizons' moment.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._means = np.zeros((2, FEATURES - 1 + len(HALF_LIVES)), dtype=np.float32)  # running, and shown

    def change(self, told: Floats, popularity: Floats, horizons: Horizons) -> RowChange:
        """The means after events with features `told` (B, FEATURES - 1), of items with decayed counts (B, horizons)."""
        share = horizons.shares(popularity + np.float32(_LEAST))
        fresh = np.concatenate([told, np.log(np.minimum(share, 1))], axis=1).mean(axis=0)
        step = 1 - 0.5 ** (len(told) / _HALF_LIFE) if horizons.events else 1.0
        means = self._means[0] + np.float32(step) * (fresh - self._means[0])
        moves = horizons.moment_after(len(told)) > horizons.moment
        rows = np.arange(1 + moves, dtype=np.int32)
        return {"domain": (rows, np.stack([means] * len(rows)).astype(np.float32))}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        rows, means = change["domain"]
        self._means[rows] = means

    @property
    def features(self) -> Floats:
        """The means (FEATURES,) that a network can read; the last is the horizon that foretells best."""
        best = HALF_LIVES[self._likelihood.argmax()]
        return np.append(self._means[1, : FEATURES - 1], np.log(best) / 10).astype(np.float32)

    @property
    def horizon_weights(self) -> Floats:
        """How far to trust each horizon (horizons,), in all 1."""
        sharp = _SHARPNESS * self._likelihood
        weights = np.exp(sharp - sharp.max())
        trusted: Floats = (weights / weights.sum()).astype(np.float32)
        return trusted

    @property
    def _likelihood(self) -> Floats:
        return self._means[1, FEATURES - 1 :]

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of the means."""
        return {"domain": self._means.copy()}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self._means = np.array(state["domain"], dtype=np.float32)
