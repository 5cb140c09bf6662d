"""Public logs that felrec can download and read; none of them is bundled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Companion(NamedTuple):
    """A file that is kept beside a log."""

    file: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """A published log: its content, its licence and its source.

    >>> DATASETS["ml-25m"].url
    'https://files.grouplens.org/datasets/movielens/ml-25m.zip'
    """

    name: str
    title: str
    rows: int  # as published; rounded for twitch-full, where only rounded numbers are published
    users: int  # with at least one event
    items: int  # with at least one event: MovieLens lists more films than were rated
    licence: str
    homepage: str
    url: str | None  # None: must be downloaded manually
    file: str  # name of the log file in the dataset's folder
    md5: str | None = None  # as published beside the file
    sha256: str | None = None
    beside: tuple[Companion, ...] = ()  # files that belong to the log, such as the titles of its items

    @property
    def is_archive(self) -> bool:
        """Whether the download is a ZIP archive."""
        return self.url is not None and self.url.endswith(".zip")


def _movielens(size: str, rows: int, users: int, items: int, file: str, md5: str) -> Dataset:
    # The checksums are from https://files.grouplens.org/datasets/movielens/ml-….zip.md5
    return Dataset(
        name=f"ml-{size}",
        title=f"MovieLens {size.upper()}: ratings of films",
        rows=rows,
        users=users,
        items=items,
        licence="GroupLens: research, no redistribution, no commercial use without permission",
        homepage=f"https://grouplens.org/datasets/movielens/{size}/",
        url=f"https://files.grouplens.org/datasets/movielens/ml-{size}.zip",
        file=file,
        md5=md5,
    )


def _twitch(name: str, rows: int, users: int, items: int, file: str, drive_id: str | None) -> Dataset:
    # `confirm=t` skips Google Drive's warning that large files are not scanned for viruses.
    drive = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
    return Dataset(
        name=f"twitch-{name}",
        title="Twitch: users watching streamers over 43 days, seen every 10 minutes",
        rows=rows,
        users=users,
        items=items,
        licence="none stated; cite Rappaz, McAuley and Aberer, RecSys 2021",
        homepage="https://cseweb.ucsd.edu/~jmcauley/datasets.html",
        url=None if drive_id is None else drive + drive_id,
        file=file,
    )


def _jodie(name: str, title: str, rows: int, users: int, items: int) -> Dataset:
    return Dataset(
        name=f"jodie-{name}",
        title=title,
        rows=rows,
        users=users,
        items=items,
        licence="none stated; cite Kumar, Zhang and Leskovec, KDD 2019",
        homepage="https://snap.stanford.edu/jodie/",
        url=f"https://snap.stanford.edu/jodie/{name}.csv",
        file=f"{name}.csv",
    )


def _movietweetings() -> Dataset:
    # The checksums are of the files at this commit: the authors publish none.
    snapshot = "https://raw.githubusercontent.com/sidooms/MovieTweetings/44c525d0c766944910686c60697203cda39305d6/snapshots/100K"
    return Dataset(
        name="movietweetings",
        title="MovieTweetings, snapshot of 100,000: films rated on Twitter in 2013",
        rows=100_000,
        users=16_554,
        items=10_506,
        licence="MIT; cite Dooms, De Pessemier and Martens, CrowdRec 2013",
        homepage="https://github.com/sidooms/MovieTweetings",
        url=f"{snapshot}/ratings.dat",
        file="ratings.dat",
        sha256="c0dd868c2632d10002ebc928ddc5345f33adeaa59eca52c2941c26a2c5e36fd6",
        beside=(
            Companion(
                "movies.dat",
                f"{snapshot}/movies.dat",
                "e63fb84bc734e3c574f135634a40d3cbafab22b8f94f5fc0b80f80d1d2076efc",
            ),
        ),
    )


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        _movielens("100k", 100_000, 943, 1_682, "u.data", "0e33842e24a9c977be4e0107933c0723"),
        _movielens("1m", 1_000_209, 6_040, 3_706, "ratings.dat", "c4d9eecfca2ab87c1945afe126590906"),
        _movielens("10m", 10_000_054, 69_878, 10_677, "ratings.dat", "ce571fd55effeba0271552578f2648bd"),
        _movielens("20m", 20_000_263, 138_493, 26_744, "ratings.csv", "cd245b17a1ae2cc31bb14903e1204af3"),
        _movielens("25m", 25_000_095, 162_541, 59_047, "ratings.csv", "6b51fb2759a8657d3bfcbfc42b592ada"),
        _movielens("32m", 32_000_204, 200_948, 84_432, "ratings.csv", "d472be332d4daa821edc399621853b57"),
        _twitch("100k", 3_051_733, 100_000, 162_625, "100k_a.csv", "13lbPDxlEI-ceKCR0H2a9glrgAOukV_Vt"),
        _twitch("full", 124_000_000, 15_500_000, 465_000, "full_a.csv.gz", None),
        _movietweetings(),
        _jodie("reddit", "Reddit: posts of users to subreddits in one month", 672_447, 10_000, 984),
        _jodie("wikipedia", "Wikipedia: edits of pages in one month", 157_474, 8_227, 1_000),
        _jodie("lastfm", "LastFM: songs that users listened to in one month", 1_293_103, 980, 1_000),
        _jodie("mooc", "MOOC: actions of students in a course", 411_749, 7_047, 97),
    )
}
"""Every known dataset, by name."""
