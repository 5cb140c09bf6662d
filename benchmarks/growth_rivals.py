"""What a user would pick instead of felrec, over the same made-up catalogue: `implicit` and an index of vectors (HNSW).

Their cost does not depend on what they learned. So factors and similarities are random instead of fitted, and only the
cost of *adding* is a real one: `implicit` fits item-kNN anew for a new item, and solves for one item with ALS; an index
inserts a vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import scipy.sparse as sparse
from implicit._nearest_neighbours import NearestNeighboursScorer
from implicit.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from made_up_rows import OWN, WIDTH, MadeUp
from numpy.typing import NDArray
from usearch.index import Index

NEIGHBOURS = 20  # of item-kNN: the default of `implicit`
K = 10
REFITTED = 100_000  # items up to which item-kNN is fitted again: it takes minutes beyond


class Rival(ABC):
    """One of them: answers for users, and a new item."""

    def __init__(self, made_up: MadeUp) -> None:
        self.users, self.items, self.random = made_up.users, made_up.items, made_up.random
        some = min(self.users, 10_000)  # whose items are known: answers are for these
        columns = made_up.draw(some, OWN).reshape(-1)
        cells = (np.ones(len(columns), dtype=np.float32), columns, np.arange(0, len(columns) + 1, OWN))
        self.taken = sparse.csr_matrix(cells, shape=(some, self.items))
        self.made_up = made_up

    @abstractmethod
    def answer(self, users: NDArray[np.int64]) -> None:
        """Ten items for each of some users, all at once."""

    @abstractmethod
    def add(self) -> bool:
        """Add a new item; False if that takes too long here."""

    def _vectors(self, count: int) -> NDArray[np.float32]:
        return self.random.standard_normal((count, WIDTH), dtype=np.float32) / np.float32(np.sqrt(WIDTH))


class ItemKnn(Rival):
    """`implicit`'s item-kNN, with cosines."""

    def __init__(self, made_up: MadeUp) -> None:
        super().__init__(made_up)
        near = made_up.draw(self.items, NEIGHBOURS)
        values = self.random.random(near.size)
        cells = (values, near.reshape(-1), np.arange(0, near.size + 1, NEIGHBOURS))
        self.model = CosineRecommender(K=NEIGHBOURS, num_threads=1)
        self.model.similarity = sparse.csr_matrix(cells, shape=(self.items, self.items))
        self.model.scorer = NearestNeighboursScorer(self.model.similarity)

    def answer(self, users: NDArray[np.int64]) -> None:
        """Sums of similarities to the user's items."""
        self.model.recommend(users, self.taken[users], N=K, filter_already_liked_items=False)

    def add(self) -> bool:
        """There is no partial fit: fit again, with as many events as users have."""
        if self.items > REFITTED:
            return False
        CosineRecommender(K=NEIGHBOURS, num_threads=1).fit(self.taken.tocsr(), show_progress=False)
        return True


class Als(Rival):
    """`implicit`'s ALS."""

    def __init__(self, made_up: MadeUp) -> None:
        super().__init__(made_up)
        self.model = AlternatingLeastSquares(factors=WIDTH, num_threads=1)
        self.model.user_factors, self.model.item_factors = self._vectors(self.users), self._vectors(self.items)

    def answer(self, users: NDArray[np.int64]) -> None:
        """Products with the factors of all items."""
        self.model.recommend(users, self.taken[users], N=K, filter_already_liked_items=False)

    def add(self) -> bool:
        """Solve for the factors of one new item with one event."""
        users = sparse.csr_matrix(([1.0], ([0], [0])), shape=(1, self.users), dtype=np.float32)
        self.model.partial_fit_items(np.array([len(self.model.item_factors)]), users)
        return True


class Hnsw(Rival):
    """An index of vectors; the vector of a user is given."""

    def __init__(self, made_up: MadeUp) -> None:
        super().__init__(made_up)
        self.index = Index(ndim=WIDTH, metric="ip", dtype="f32")
        self.index.add(np.arange(self.items), self._vectors(self.items), threads=2)
        self.of_users = self._vectors(self.taken.shape[0])

    def answer(self, users: NDArray[np.int64]) -> None:
        """Approximate neighbours."""
        self.index.search(self.of_users[users], K, threads=1)

    def add(self) -> bool:
        """Insert one vector."""
        self.index.add(len(self.index), self._vectors(1)[0], threads=1)
        return True


RIVALS: dict[str, Callable[[MadeUp], Rival]] = {"item-kNN": ItemKnn, "ALS": Als, "HNSW": Hnsw}
