"""The names of a partition's files and directories, as Kafka writes them."""

from __future__ import annotations

import re
from typing import Final

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
DELETE_DIR_SUFFIX: Final = "-delete"
STRAY_DIR_SUFFIX: Final = "-stray"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
NAME_LENGTH_MAX: Final = 255

_FILE: Final = re.compile(r"(\d{20})(\.[a-z]+)((?:\.deleted|\.cleaned|\.swap)?)")
_DIRECTORY: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9]\d{0,9})")
_DOOMED: Final = re.compile(r".+-\d+\.[0-9a-f]{32}-(?:delete|stray)")


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str, str] | None:
    """``(offset, suffix, marker)``; the marker is empty or says deleted, cleaned or swap."""
    match = _FILE.fullmatch(name)
    return (int(match[1]), match[2], match[3]) if match else None


def directory_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_directory_name(name: str) -> tuple[str, int] | None:
    """The partition of a directory; None if the directory has no live log."""
    if is_doomed(name):
        return None
    match = _DIRECTORY.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def doomed_directory_name(topic: str, partition: int, unique: str, suffix: str) -> str:
    """The name of a directory to be deleted, shortened for the file system."""
    tail = f"-{partition}.{unique}{suffix}"
    return topic[: NAME_LENGTH_MAX - len(tail)] + tail


def is_doomed(name: str) -> bool:
    return _DOOMED.fullmatch(name) is not None


def is_deleted_directory(name: str) -> bool:
    return is_doomed(name) and name.endswith(DELETE_DIR_SUFFIX)
