"""Sequence: vectors of items that events alone make, and a small Transformer that reads a user's sequence of them.

Every item has two vectors: what it is when it comes *before* another item, and what it is when it comes *after* one. An
event adds the `after` vector of its item to the `before` vectors of the user's last ten items, and theirs to its own.
Items that lead to the same items thus become alike, and so do items that the same items lead to. This is the power
method for the singular vectors of the matrix of transitions, one event at a time. As there, all vectors would turn into
the direction of what is popular; so what is added is whitened by the spread of what was added lately.

The vectors have no weights and need no gradients: an item has a meaningful one right after its first event.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, Rows
from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.table import TableState
from felrec.model.signals.item_links import WINDOW, linking
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.seeds import seeds
from felrec.model.signals.sequence_network import SequenceNetwork
from felrec.model.signals.signal import Floats, Ints
from felrec.model.signals.trend import Trend
from felrec.recommender import Queries

_VECTORS, _MASSES = "sequence_vectors", "sequence_masses"
_SPREAD, _WHITENING = "sequence_spread", "sequence_whitening"
_SIDES = np.arange(2, dtype=np.int32)  # 0: as the item before, 1: as the item after
_FADE = 0.998  # of what a vector was, with each unit of what is added
_SHRINKAGE = 10.0  # events that are added to those of an item, by which its share is divided
_SEED = 0.01  # the mass of a vector that nothing was added to
_HALF_LIFE = 20_000  # of the spread, in events
_LARGEST_STEP = 0.02  # of the spread: after a larger one Newton's method might not find the root
_LEAST_SPREAD = 0.02  # directions with less are not made larger
_TINY = 1e-12  # added to squared lengths, none of which may be 0
_DISCOUNT: Floats = (1 / np.arange(WINDOW, 0, -1)).astype(np.float32)  # of the user's last items, oldest first


class Sequence:
    """Vectors of items, and what a user wants by their own sequence."""

    names: tuple[str, ...] = ()  # its match is read with the context of a pair

    def __init__(self, network: SequenceNetwork, recent: RecentEvents, trend: Trend) -> None:
        self.network, self._recent, self._trend = network, recent, trend
        self.half = network.width // 2
        self.vectors = GrowingArray(np.float32, (network.width,))  # both vectors of each item, of length 1
        self.masses = GrowingArray(np.float32, (2,))  # their lengths before; 0: never written
        self.clear()

    def wanted(self, queries: Queries) -> Tensor:
        """What each user wants (B, D), to be compared with the vectors of items."""
        history, mask = self._recent.users.recent(queries.users, queries.pending)
        vectors = self.vectors.read(history.ravel()).reshape(*history.shape, -1)
        device = self.network.positions.device
        wanted: Tensor = self.network(torch.from_numpy(vectors).to(device), torch.from_numpy(mask).to(device))
        return wanted

    def matches(self, queries: Queries, query: Ints, rows: Rows) -> Tensor:
        """How well items (M,) fit what the users of these queries (M,) want."""
        wanted = self.wanted(queries)[torch.from_numpy(query)]
        return (wanted * torch.from_numpy(self.vectors.read(rows)).to(wanted.device)).sum(dim=1)

    def change(self, block: BlockView) -> RowChange:
        """The vectors of all items that a block links, and of its new items; all from the vectors as they are."""
        items, history = block.events.items, block.history[:, -WINDOW:]
        mask = linking(block.history, block.mask, items)[:, -WINDOW:] & (history != items[:, None])
        event, place = np.nonzero(mask)
        before, after, weight = history[event, place], items[event], _DISCOUNT[-history.shape[1] :][place]
        rows = np.unique(np.concatenate([before, items]))
        vectors, masses = self._read(rows)
        added, used = self._added(rows, vectors, (before, after), weight)
        spread = np.stack([self._spread_after(side, added[side], used[side], len(block)) for side in range(2)])
        for side, of_side in enumerate(np.split(vectors, 2, axis=1)):
            kept = masses[:, side] * np.float32(_FADE) ** used[side]
            sums = of_side * kept[:, None] + added[side] @ self.whitening[side]
            masses[:, side] = _lengths(sums)
            of_side[:] = sums / masses[:, side, None]
        return {
            _VECTORS: (rows, vectors),
            _MASSES: (rows, masses),
            _SPREAD: (_SIDES, spread.reshape(2, -1)),
            _WHITENING: self._whitening_after(spread, len(block)),
        }

    def _whitening_after(self, spread: Floats, events: int) -> tuple[Rows, Floats]:
        """How what is added is whitened from now on: renewed at every moment of the trend."""
        counts = self._trend.counts
        if counts.moment_after(events) == counts.moment:
            return _SIDES[:0], self.whitening.reshape(2, -1)[:0]
        renewed = [_whitened(of_side, before) for of_side, before in zip(spread, self.whitening, strict=True)]
        return _SIDES, np.stack(renewed).reshape(2, -1)

    def _read(self, rows: Rows) -> tuple[Floats, Floats]:
        """Vectors and masses of rows; those that were never written are short and random."""
        vectors, masses = self.vectors.read(rows), self.masses.read(rows)
        new = masses[:, 0] == 0
        vectors[new] = np.concatenate([seeds(rows[new], self.half, side).numpy() for side in range(2)], axis=1)
        masses[new] = _SEED
        return vectors, masses

    def _added(self, rows: Rows, vectors: Floats, moves: tuple[Rows, Rows], weight: Floats) -> tuple[Floats, Floats]:
        """What is added to each row (2, R, D / 2) as the item before and as the one after, and with how much weight."""
        added, used = np.zeros((2, len(rows), self.half), np.float32), np.zeros((2, len(rows)), np.float32)
        for side, of_others in enumerate((vectors[:, self.half :], vectors[:, : self.half])):
            owners, others = np.searchsorted(rows, moves[side]), np.searchsorted(rows, moves[1 - side])
            share = weight / np.sqrt(self._recent.items.counts(moves[1 - side]) + np.float32(_SHRINKAGE))
            np.add.at(added[side], owners, of_others[others] * share[:, None])
            used[side] = np.bincount(owners, weight, len(rows))
        return added, used

    def _spread_after(self, side: int, added: Floats, used: Floats, events: int) -> Floats:
        """The running mean of the products of all coordinates of what was added, as directions."""
        touched = added[used > 0]
        directions = touched / _lengths(touched)[:, None]
        step = np.float32(min(_LARGEST_STEP, 1 - 0.5 ** (events / _HALF_LIFE)) if len(touched) else 0)
        before, fresh = self.spread[side], directions.T @ directions / max(1, len(touched))
        spread: Floats = before + step * (fresh - before)
        return spread

    def apply_change(self, change: RowChange) -> None:
        """Copy the vectors of a change."""
        self.vectors.write(*change[_VECTORS])
        self.masses.write(*change[_MASSES])
        self.spread[:] = change[_SPREAD][1].reshape(self.spread.shape)
        sides, whitening = change[_WHITENING]
        self.whitening[sides] = whitening.reshape(-1, *self.whitening.shape[1:])

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """Items that nobody else had lose their vectors; of the others one user's part is not known."""
        gone = context.items[context.left == 0]
        return {
            _VECTORS: (gone, self.vectors.blank(len(gone))),
            _MASSES: (gone, self.masses.blank(len(gone))),
            _SPREAD: (_SIDES, self.spread.reshape(2, -1).copy()),
            _WHITENING: (_SIDES, self.whitening.reshape(2, -1).copy()),
        }

    def clear(self) -> None:
        """Forget all events."""
        self.vectors.clear()
        self.masses.clear()
        self.spread: Floats = np.stack([np.eye(self.half, dtype=np.float32) / self.half] * 2)
        self.whitening: Floats = np.stack([np.eye(self.half, dtype=np.float32)] * 2)

    def view(self) -> TableState:
        """All rows, without a copy."""
        return {
            _VECTORS: self.vectors.values,
            _MASSES: self.masses.values,
            _SPREAD: self.spread.reshape(2, -1),
            _WHITENING: self.whitening.reshape(2, -1),
        }

    def state(self) -> TableState:
        """A copy of all rows."""
        return {name: rows.copy() for name, rows in self.view().items()}

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self.vectors.load(np.asarray(state[_VECTORS]))
        self.masses.load(np.asarray(state[_MASSES]))
        self.spread[:] = np.asarray(state[_SPREAD]).reshape(self.spread.shape)
        self.whitening[:] = np.asarray(state[_WHITENING]).reshape(self.whitening.shape)


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.square(vectors).sum(axis=1) + np.float32(_TINY))
    return lengths


def _whitened(spread: Floats, before: Floats) -> Floats:
    """The inverse root of a spread, by two steps of Newton's method from what it was before.

    The spread changes slowly, so that they suffice.
    """
    size = len(spread)
    whole = spread * (size / np.trace(spread)) + np.float32(_LEAST_SPREAD) * np.eye(size, dtype=np.float32)
    root: Floats = before
    for _ in range(2):
        root = np.float32(1.5) * root - np.float32(0.5) * (root @ whole @ root @ root)
        root = ((root + root.T) / 2).astype(np.float32)
    return root
