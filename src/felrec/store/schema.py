"""The tables of a store file."""

from __future__ import annotations

FORMAT = 2  # 1: answers expire by the clock of the machine, the store has no id
APPLICATION = 0x666C7263  # "flrc", in the file header: identifies felrec's files

TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE users (row INTEGER PRIMARY KEY, id TEXT, crc INTEGER NOT NULL);
CREATE TABLE items (row INTEGER PRIMARY KEY, id TEXT, crc INTEGER NOT NULL);
CREATE TABLE attributes (id TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE base (row INTEGER PRIMARY KEY, records BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE blocks (row INTEGER PRIMARY KEY, records BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE state (row INTEGER PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE answers (key BLOB PRIMARY KEY, body BLOB NOT NULL, text TEXT NOT NULL, expires REAL NOT NULL,
                      crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX answers_by_end ON answers (expires);
"""
# A row of `state` is row r of table t, numbered r * (number of tables) + t, so that all rows of a user are on one page.

PART = 65_536  # pairs per part of the base
