"""Detect the real content of a file."""

from __future__ import annotations

import gzip
from pathlib import Path

from felrec.errors import DataError

_MAGIC = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
_WHAT_TO_DO = {
    "a Parquet file": "rename it to .parquet",
    "a ZIP archive": "unpack it and give the file inside",
    "a gzip file": "unpack it, or rename it to end in .gz",
    "UTF-16 text": "save it as UTF-8",
    "an HTML page": "the download went wrong; fetch the file again",
    "binary data": "give a Parquet, CSV, TSV, JSON lines or .inter file",
    "text": "rename it to .csv or .tsv, or convert it",
}


def content_of(head: bytes) -> str:
    """Describe the content of a file from its first bytes.

    >>> content_of(b"PAR1..."), content_of(b"user,item"), content_of(b" <!DOCTYPE html>")
    ('a Parquet file', 'text', 'an HTML page')
    """
    magic = next((what for start, what in _MAGIC if head.startswith(start)), None)
    if magic:
        return magic
    if head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "an HTML page"
    return "binary data" if b"\0" in head else "text"


def check_content(path: Path, expected: str) -> bytes:
    """Return the first bytes of a file, unpacked if it is a .gz; raise DataError if the content is not as expected."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the file") from error
    if not head:
        raise DataError(f"{path}: the file is empty; give a log with at least one row of data")
    found = content_of(head)
    if found != expected:
        raise DataError(f"{path}: this is {found}, not {expected} as its name says; {_WHAT_TO_DO[found]}")
    return head
