"""The input files of a job: named, in a directory or bucket, or by a pattern."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from pyarrow import fs

from skylog.kernel.errors import ConfigError

_WILD: Final = frozenset("*?[")


class FoundFile(NamedTuple):
    """A file by its URL."""

    path: str
    size: int

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix.lower()


def find_files(paths: Iterable[str]) -> list[FoundFile]:
    """All files, each once, in name order; ConfigError for a path without any."""
    found: dict[str, FoundFile] = {}
    for path in paths:
        below = _find(path)
        if not below:
            raise ConfigError(f"{path}: no file found")
        found |= {one.path: one for one in below}
    return sorted(found.values())


def _find(text: str) -> list[FoundFile]:
    """Names that begin with _ or . are not data, as everywhere in Spark."""
    plain, pattern = _split(text)
    try:
        system, path, prefix = _opened(plain)
        there = system.get_file_info(path)
        if there.type == fs.FileType.File:
            return [FoundFile(f"{prefix}{path}", there.size)]
        if there.type == fs.FileType.NotFound:
            return []
        infos = system.get_file_info(fs.FileSelector(path, recursive=True))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{text} cannot be read: {error}") from None
    base = path.rstrip("/")
    files = []
    for info in infos:
        inside = info.path[len(base) + 1 :]
        hidden = any(part.startswith(("_", ".")) for part in inside.split("/"))
        wanted = pattern is None or fnmatch.fnmatchcase(inside, pattern)
        if info.type == fs.FileType.File and not hidden and wanted:
            files.append(FoundFile(f"{prefix}{info.path}", info.size))
    return files


def _opened(text: str) -> tuple[Any, str, str]:
    """The file system, the path in it, and the part of a URL before that."""
    if "://" not in text:
        return fs.LocalFileSystem(), str(Path(text).absolute()), "file://"
    system, path = fs.FileSystem.from_uri(text)
    scheme = text.partition("://")[0]
    return system, path, f"{scheme}://"


def _split(text: str) -> tuple[str, str | None]:
    """The directory before the first wild card, and the pattern below it."""
    parts = text.split("/")
    for index, part in enumerate(parts):
        if _WILD & set(part):
            return "/".join(parts[:index]) or ("/" if text.startswith("/") else "."), "/".join(
                parts[index:]
            )
    return text, None
