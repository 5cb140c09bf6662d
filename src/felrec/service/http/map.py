"""The map: a t-SNE of users and items, computed in the background at the first request.

Users and items have separate maps, as in the paper's figure of embeddings. Positions stay until the store has grown
by a quarter; the match that colours them is always current.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from felrec.answers.types import LEFT_OUT, Answer
from felrec.errors import FelrecError, InvalidRequest, how_to_install
from felrec.service.engine.cluster.member import AnyEngine
from felrec.service.engine.types import Side
from felrec.service.http.logs import note

POINTS = 1_000  # users and items on the map: those with most events
FEWEST = 8  # fewest points of a map
GROWTH = 1.25  # growth of the number of events after which a new map is computed
WORKING = "Computing the map: t-SNE of {users:,} users and {items:,} items, {seconds:.0f} s so far."
EMPTY = "The store is empty, so there is nothing to draw. Import or post some events; the map appears by itself."
NEEDS = f"The map needs openTSNE: {how_to_install('plots')}; then restart the service."


@dataclass(frozen=True)
class Place(Answer):
    """A user or an item on the map."""

    id: str
    title: str | None
    x: float
    y: float


@dataclass(frozen=True)
class MapOfAll(Answer):
    """The map, or a message that says why there is none; ask again while `working`."""

    ready: bool
    working: bool | None = None
    message: str | None = None
    version: int | None = None  # identifies this map
    users: tuple[Place, ...] = field(default_factory=lambda: LEFT_OUT)
    items: tuple[Place, ...] = field(default_factory=lambda: LEFT_OUT)


@dataclass(frozen=True)
class MapMatch(Answer):
    """Scores of the users and items on the map with this version (0: no map)."""

    version: int
    users: tuple[float, ...]
    items: tuple[float, ...]


class Cartographer:
    """Computes the map of an engine in a thread at the first request. May be called from any thread."""

    def __init__(self, engine: AnyEngine) -> None:
        self.engine = engine
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._began = 0.0
        self._map: MapOfAll | None = None
        self._events = 0  # in the store when the map was computed
        self._failure: str | None = None

    def latest(self) -> MapOfAll:
        """The newest map, or why there is none. Starts computing one if it is missing or outdated."""
        health = self.engine.health()
        if not health.events:
            return MapOfAll(ready=False, working=False, message=EMPTY)
        with self._lock:
            outgrown = self._map is None or health.events > GROWTH * self._events
            working = self._thread is not None and self._thread.is_alive()
            if outgrown and not working and self._failure is None:
                working = self._start()
            if self._map is not None:
                return self._as_of_now(self._map)
            if self._failure is not None:
                failure, self._failure = self._failure, None  # the next call tries again
                return MapOfAll(ready=False, working=False, message=failure)
        users, items = (min(POINTS, number) for number in (health.users, health.items))
        message = WORKING.format(users=users, items=items, seconds=time.monotonic() - self._began)
        return MapOfAll(ready=False, working=working, message=message)

    def _as_of_now(self, made: MapOfAll) -> MapOfAll:
        """The map without erased users and items, with current titles."""
        users, items = self._still_there("user", made.users), self._still_there("item", made.items)
        if len(users) < len(made.users) or len(items) < len(made.items):
            self._map = made = replace(made, version=_version(), users=users, items=items)
        return replace(made, items=tuple(replace(point, title=self._title(point.id)) for point in made.items))

    def _still_there(self, side: Side, points: tuple[Place, ...]) -> tuple[Place, ...]:
        kept = set(self.engine.known(side, [point.id for point in points]))
        return tuple(point for point in points if point.id in kept)

    def match(self, *, user: str | None = None, item: str | None = None) -> MapMatch:
        """The current match of each user and item on the map with one user or one item."""
        made = self._map
        if made is None or made.version is None:
            return MapMatch(0, (), ())
        users = self.engine.match("user", [point.id for point in made.users], user=user, item=item)
        items = self.engine.match("item", [point.id for point in made.items], user=user, item=item)
        return MapMatch(made.version, tuple(users), tuple(items))

    def _start(self) -> bool:
        if find_spec("openTSNE") is None:
            self._failure = NEEDS
            return False
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._make, name="map", daemon=True)
        self._thread.start()
        return True

    def _make(self) -> None:
        """Runs in the thread; a failure is reported to the next caller."""
        try:
            events = self.engine.health().events
            users, items = self._place("user"), self._place("item")
            self._map, self._events = MapOfAll(ready=True, version=_version(), users=users, items=items), events
            note("map made", users=len(users), items=len(items), seconds=round(time.monotonic() - self._began, 1))
        except FelrecError as error:
            self._failure = f"No map: {error}"
        except Exception as error:
            note("map failed", level=40, exception=error)
            self._failure = "The map could not be computed; see the service log."

    def _place(self, side: Side) -> tuple[Place, ...]:
        vectors = self.engine.vectors(side, POINTS)
        places = embed(vectors.values).round(3)
        return tuple(map(Place, vectors.ids, repeat(None), *places.T.tolist()))

    def _title(self, identifier: str) -> str | None:
        """The current title, which may be newer than the map."""
        try:
            return self.engine.item(identifier).title
        except FelrecError:  # deleted in the meantime
            return None


def _version() -> int:
    """Random, so that a page that was open during a restart does not confuse two maps."""
    return 1 + secrets.randbits(48)


def embed(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Positions (n, 2) of vectors (n, D) by t-SNE, on one core, which leaves the others to the service."""
    from openTSNE import TSNE

    if len(vectors) < FEWEST:
        raise InvalidRequest(f"{len(vectors)} users or items are too few; a map needs {FEWEST} of each")
    tsne = TSNE(
        perplexity=min(30.0, (len(vectors) - 1) / 3),
        metric="cosine",
        neighbors="exact",
        negative_gradient_method="bh",
        early_exaggeration_iter=150,
        n_iter=350,
        n_jobs=1,
        random_state=0,
    )
    return np.asarray(tsne.fit(np.asarray(vectors, dtype=np.float64)))
