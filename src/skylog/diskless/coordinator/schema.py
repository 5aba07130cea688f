"""The tables of a coordinator's SQLite file, and all statements on them."""

# ruff: noqa: S608 - statements are put together from constants only

from __future__ import annotations

import sqlite3
from typing import Final

from skylog.diskless.batch import Stamp
from skylog.diskless.coordinator.state import BATCH_SPACING_BITS, FILE_POSITION_BITS, Applied
from skylog.diskless.rules.offsets import LogState
from skylog.kernel.limits import DISKLESS_AUTO_CHECKPOINT_PAGES

# Increased with every change of the tables: a file of another version is discarded.
VERSION: Final = 2
OFFSET_MAX: Final = 2**63 - 1

_TABLES: Final = """
CREATE TABLE applied (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    end_offset INTEGER NOT NULL,
    timestamp_ms INTEGER NOT NULL,
    last_base_offset INTEGER NOT NULL,
    last_crc INTEGER NOT NULL,
    identity TEXT NOT NULL
) STRICT;
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    topic_id BLOB NOT NULL,
    partition INTEGER NOT NULL,
    name TEXT NOT NULL,
    log_start_offset INTEGER NOT NULL DEFAULT 0,
    high_watermark INTEGER NOT NULL DEFAULT 0,
    byte_size INTEGER NOT NULL DEFAULT 0,
    wal_start_offset INTEGER NOT NULL DEFAULT 0,
    max_seen_ms INTEGER NOT NULL DEFAULT -1,
    UNIQUE (topic_id, partition)
) STRICT;
CREATE TABLE files (
    log_offset INTEGER PRIMARY KEY,
    object_key TEXT NOT NULL UNIQUE,
    format INTEGER NOT NULL,
    size INTEGER NOT NULL,
    uploader_broker_id INTEGER NOT NULL,
    owner_ids TEXT NOT NULL,
    committed_ms INTEGER NOT NULL,
    live_batches INTEGER NOT NULL,
    deletable_since_ms INTEGER NOT NULL,
    received INTEGER NOT NULL
) STRICT;
CREATE INDEX files_free ON files (deletable_since_ms, log_offset) WHERE live_batches = 0;
CREATE INDEX files_live ON files (committed_ms) WHERE live_batches > 0;
CREATE TABLE answers (
    log_offset INTEGER PRIMARY KEY,
    committed_ms INTEGER NOT NULL,
    answers BLOB NOT NULL
) STRICT;
CREATE TABLE batches (
    partition_id INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    max_seen_ms INTEGER NOT NULL,
    log_offset INTEGER NOT NULL,
    byte_offset INTEGER NOT NULL,
    byte_size INTEGER NOT NULL,
    log_append_timestamp INTEGER NOT NULL,
    batch_max_timestamp INTEGER NOT NULL,
    timestamp_type INTEGER NOT NULL,
    magic INTEGER NOT NULL,
    PRIMARY KEY (partition_id, last_offset)
) STRICT, WITHOUT ROWID;
CREATE TABLE producers (
    partition_id INTEGER NOT NULL,
    producer_id INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    entries BLOB NOT NULL,
    PRIMARY KEY (partition_id, producer_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX producers_by_time ON producers (last_ms);
CREATE TABLE pins (
    object_key TEXT PRIMARY KEY,
    writer_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    size INTEGER NOT NULL,
    format INTEGER NOT NULL,
    answers BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pins_by_time ON pins (expires_ms);
"""

_STAMP: Final = ", ".join(Stamp._fields)
# ``state.batch_id``.
_BATCH_ID: Final = f"(b.log_offset << {FILE_POSITION_BITS}) | (byte_offset >> {BATCH_SPACING_BITS})"
# As ``BatchCoordinate.of_row`` takes them.
_COORDINATE: Final = f"{_BATCH_ID}, f.object_key, byte_offset, b.byte_size, {_STAMP}"
_FILE: Final = (
    "object_key, format, size, uploader_broker_id, owner_ids, log_offset, committed_ms,"
    " live_batches, deletable_since_ms, received"
)
_LOG: Final = ", ".join(LogState._fields)
_TIMESTAMP: Final = (
    "CASE timestamp_type WHEN 1 THEN log_append_timestamp ELSE batch_max_timestamp END"
)
# The partition comes first, so that its batches are found and their files looked up, not the other
# way round.
_FROM: Final = "FROM batches b CROSS JOIN files f ON f.log_offset = b.log_offset"
_OF_FILE: Final = "log_offset = (SELECT log_offset FROM files WHERE object_key = ?)"

APPLIED: Final = "SELECT end_offset, timestamp_ms, last_base_offset, last_crc FROM applied"
SET_APPLIED: Final = (
    "UPDATE applied SET end_offset = ?, timestamp_ms = ?, last_base_offset = ?, last_crc = ?"
)
PARTITION: Final = (
    f"SELECT id, {_LOG}, max_seen_ms FROM partitions WHERE topic_id = ? AND partition = ?"
)
PARTITIONS_OF: Final = "SELECT partition FROM partitions WHERE topic_id = ? ORDER BY partition"
ALL_PARTITIONS: Final = (
    f"SELECT topic_id, partition, name, {_LOG} FROM partitions ORDER BY topic_id, partition"
)
CREATE_PARTITION: Final = "INSERT INTO partitions (topic_id, partition, name) VALUES (?, ?, ?)"
SET_LOG: Final = (
    f"UPDATE partitions SET {' = ?, '.join(LogState._fields)} = ?, max_seen_ms = ? WHERE id = ?"
)
DROP_PARTITION: Final = "DELETE FROM partitions WHERE id = ?"

BATCHES: Final = (
    f"SELECT {_COORDINATE} {_FROM}"
    " WHERE b.partition_id = ? AND b.last_offset >= ? ORDER BY b.last_offset"
)
BATCH_AT_TIME: Final = (
    f"SELECT {_COORDINATE} {_FROM} WHERE b.partition_id = ? AND b.last_offset >= ?"
    f" AND {_TIMESTAMP} >= ? ORDER BY b.last_offset LIMIT 1"
)
LATEST_BATCH: Final = (
    f"SELECT {_COORDINATE} {_FROM} WHERE b.partition_id = ? AND b.last_offset >= ?"
    f" ORDER BY {_TIMESTAMP} DESC, b.last_offset LIMIT 1"
)
MAX_SEEN: Final = (
    "SELECT last_offset, max_seen_ms FROM batches"
    " WHERE partition_id = ? AND last_offset >= ? ORDER BY last_offset LIMIT 1"
)
# Like ``ranges.split_page``; the last batch is found separately, so that the scan ends there.
SPLIT_PAGE: Final = f"""
WITH page AS (
    SELECT base_offset, last_offset, byte_size,
        CASE WHEN {_TIMESTAMP} >= :min_timestamp THEN byte_size ELSE 0 END AS kept
    FROM batches
    WHERE partition_id = :id AND last_offset >= :start AND last_offset <= (
        SELECT last_offset FROM batches WHERE partition_id = :id AND last_offset >= :end - 1
        ORDER BY last_offset LIMIT 1)
    ORDER BY last_offset LIMIT :limit
), placed AS (
    SELECT *, (SUM(kept) OVER (ORDER BY last_offset) - kept) / :split_bytes AS number FROM page
)
SELECT kept > 0, MIN(base_offset), MAX(last_offset) + 1, SUM(byte_size), COUNT(*)
FROM placed GROUP BY kept > 0, number ORDER BY 2
"""
ADD_BATCH: Final = (
    "INSERT INTO batches (partition_id, max_seen_ms, log_offset, byte_offset, byte_size,"
    f" {_STAMP}) VALUES (?, ?, ?, ?, ?{', ?' * len(Stamp._fields)})"
)
COUNT_BATCHES: Final = (
    "SELECT log_offset, COUNT(*), SUM(byte_size) FROM batches"
    " WHERE partition_id = ? AND last_offset < ? GROUP BY log_offset"
)
REMOVE_BATCHES: Final = "DELETE FROM batches WHERE partition_id = ? AND last_offset < ?"
ALL_BATCHES: Final = (
    f"SELECT b.log_offset, p.topic_id, p.partition, {_BATCH_ID}, byte_offset, b.byte_size, {_STAMP}"
    " FROM batches b JOIN partitions p ON p.id = b.partition_id"
    " ORDER BY b.log_offset, p.topic_id, p.partition, b.last_offset"
)

FILE: Final = f"SELECT {_FILE} FROM files WHERE object_key = ?"
ALL_FILES: Final = f"SELECT {_FILE} FROM files ORDER BY log_offset"
FREE_FILES: Final = (
    f"SELECT {_FILE} FROM files WHERE live_batches = 0 AND deletable_since_ms < ?"
    " AND (received = 1 OR owner_ids = ? OR owner_ids LIKE ?) = ?"
    " ORDER BY deletable_since_ms, log_offset LIMIT ?"
)
LIST_FILES: Final = f"SELECT {_FILE} FROM files WHERE object_key > ? ORDER BY object_key LIMIT ?"
# Batches have no index by file, which would slow down commits: this reads all of them.
ALL_LIVE_BYTES: Final = (
    "SELECT log_offset, SUM(byte_size) FROM batches WHERE log_offset IN"
    " (SELECT log_offset FROM files WHERE object_key > ? ORDER BY object_key LIMIT ?)"
    " GROUP BY log_offset"
)
ALL_COUNTS: Final = (
    "SELECT (SELECT COUNT(*) FROM partitions), (SELECT COUNT(*) FROM batches),"
    " (SELECT COUNT(*) FROM files WHERE live_batches > 0),"
    " (SELECT COUNT(*) FROM files WHERE live_batches = 0), (SELECT COUNT(*) FROM producers),"
    " (SELECT COUNT(*) FROM pins)"
)
OLDEST_FILE: Final = "SELECT MIN(committed_ms) FROM files WHERE live_batches > 0"
ADD_FILE: Final = f"INSERT INTO files ({_FILE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
SET_RECEIVED: Final = "UPDATE files SET received = 1 WHERE object_key = ?"
RELEASE: Final = (
    "UPDATE files SET live_batches = live_batches - ?,"
    " deletable_since_ms = CASE live_batches WHEN ? THEN ? ELSE deletable_since_ms END"
    " WHERE log_offset = ?"
)
FORGET_FILE: Final = "DELETE FROM files WHERE object_key = ?"

ANSWERS: Final = f"SELECT answers FROM answers WHERE {_OF_FILE}"
ADD_ANSWERS: Final = "INSERT INTO answers VALUES (?, ?, ?)"
FORGET_ANSWERS: Final = f"DELETE FROM answers WHERE {_OF_FILE}"
EXPIRE_ANSWERS: Final = "DELETE FROM answers WHERE committed_ms < ?"

PRODUCER: Final = "SELECT entries FROM producers WHERE partition_id = ? AND producer_id = ?"
SET_PRODUCER: Final = "INSERT OR REPLACE INTO producers VALUES (?, ?, ?, ?)"
DROP_PRODUCERS: Final = "DELETE FROM producers WHERE partition_id = ?"
EXPIRE_PRODUCERS: Final = "DELETE FROM producers WHERE last_ms <= ?"
ALL_PRODUCERS: Final = (
    "SELECT p.topic_id, p.partition, r.producer_id, r.entries FROM producers r"
    " JOIN partitions p ON p.id = r.partition_id"
)

PIN: Final = "SELECT * FROM pins WHERE object_key = ?"
ALL_PINS: Final = "SELECT * FROM pins ORDER BY object_key"
PUT_PIN: Final = "INSERT OR REPLACE INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)"
REMOVE_PIN: Final = "DELETE FROM pins WHERE object_key = ?"
EXPIRE_PINS: Final = "DELETE FROM pins WHERE expires_ms < ?"


class UnusableDatabase(Exception):  # noqa: N818
    """Not a complete database of this log and version."""


def prepare(db: sqlite3.Connection, identity: str, *, read_only: bool, check: bool) -> Applied:
    """Create or check the tables; returns how far the log is applied."""
    db.execute("PRAGMA cache_size = -16384")
    if read_only:
        db.execute("BEGIN")  # one consistent view, from the first statement on
        return applied(db)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA wal_autocheckpoint = {DISKLESS_AUTO_CHECKPOINT_PAGES}")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        db.execute("INSERT INTO applied VALUES (1, ?, ?, ?, ?, ?)", (*Applied(), identity))
    elif version != VERSION:
        raise UnusableDatabase(f"version {version}")
    found = db.execute("SELECT identity FROM applied").fetchone()
    if found is None or found[0] != identity:
        raise UnusableDatabase(f"it is a cache of {found}")
    if check and db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise UnusableDatabase("damaged")
    return applied(db)


def applied(db: sqlite3.Connection) -> Applied:
    return Applied(*db.execute(APPLIED).fetchone())
