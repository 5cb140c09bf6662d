"""The tables of a store file."""

from __future__ import annotations

# 1: answers expire by the clock of the machine, the store has no id. 2: the state is a table of single rows. 3: events
# have no weights. 4: there is no inbox and no change log. 5: rows of the state have all their cells.
FORMAT = 6
APPLICATION = 0x666C7263  # "flrc", in the file header: identifies felrec's files

STATE_TABLES = """
CREATE TABLE pages (row INTEGER PRIMARY KEY, records BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE saves (row INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, records BLOB NOT NULL,
                    crc INTEGER NOT NULL);
"""
SHARED_TABLES = """
CREATE TABLE inbox (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, body BLOB NOT NULL,
                    crc INTEGER NOT NULL);
CREATE TABLE changes (number INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT NULL);
"""
TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE users (row INTEGER PRIMARY KEY, id TEXT, crc INTEGER NOT NULL);
CREATE TABLE items (row INTEGER PRIMARY KEY, id TEXT, crc INTEGER NOT NULL);
CREATE TABLE attributes (id TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE base (row INTEGER PRIMARY KEY, records BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE blocks (row INTEGER PRIMARY KEY, records BLOB NOT NULL, crc INTEGER NOT NULL);
{STATE_TABLES}{SHARED_TABLES}
CREATE TABLE answers (key BLOB PRIMARY KEY, body BLOB NOT NULL, text TEXT NOT NULL, expires REAL NOT NULL,
                      crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX answers_by_end ON answers (expires);
"""
# A page has rows k * n to (k + 1) * n - 1 of every table of the state. A part of a save has rows between `first` and
# `last`, which are newer than those of the pages and of earlier parts. Numbers of the inbox are never used twice.

ROW_TABLES = "users", "items", "base", "blocks", "pages", "saves"  # which speak of users and items by their rows
PART = 65_536  # pairs per part of the base
