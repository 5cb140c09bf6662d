"""The world of films: ratings that people tweeted, with titles and genres, from MovieTweetings (MIT licence)."""

from __future__ import annotations

from pathlib import Path

from felrec.data.lazy_polars import pl
from felrec.data.reading.fetch import fetch
from felrec.data.reading.sources import read_log
from felrec.demo.world import World, most_frequent, told_apart, until_now
from felrec.errors import DataError
from felrec.service.engine.types import Attributes

DATASET = "movietweetings"
PEOPLE, FILMS = 1_000, 1_500  # those with most events, so that co-occurrence shows in the demo
_FIELDS = 3  # of a line of the table of films


def films(events: int, data: Path) -> World:
    """The newest ratings of busy people; downloaded into `data` unless they are there."""
    ratings = fetch(DATASET, data)
    log = read_log(ratings)
    rated = (
        pl.DataFrame(
            {
                "user": pl.Series(log.user_ids.ids(log.users)),
                "item": pl.Series(log.item_ids.ids(log.items)),
                "timestamp": log.times.astype(int),
            }
        )
        .select(pl.format("person-{}", "user").alias("user"), pl.col("item").cast(pl.String), "timestamp")
        .pipe(most_frequent, "item", FILMS)
        .pipe(most_frequent, "user", PEOPLE)
        .tail(events)
    )
    known = set(rated["item"])
    attributes = {item: given for item, given in _titles(ratings.with_name("movies.dat")).items() if item in known}
    return World(
        events=until_now(rated),
        attributes=told_apart(attributes),
        source=f"the last {rated.height:,} ratings of busy people in MovieTweetings, films rated on Twitter in 2013",
    )


def _titles(path: Path) -> dict[str, Attributes]:
    """Titles and genres from lines of `id::title::genre|genre`."""
    lines = [line.split("::") for line in path.read_text(encoding="utf-8").splitlines()]
    if any(len(line) != _FIELDS for line in lines):
        raise DataError(f"{path}: lines are not id::title::genres; remove the file to download it again")
    return {item: Attributes(title, tuple(filter(None, genres.split("|")))) for item, title, genres in lines}
