"""Removes what assemblies leave on the disk. All functions block and raise OSError."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skylog.kernel.logging import get_logger

if TYPE_CHECKING:
    from skylog.log.files import Files

_log = get_logger("tiered.consolidation")
# The directory of an assembly: partition, and its number since the start.
_OURS: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}-\d{1,10}\.\d+", re.ASCII)


def remove_leftovers(directory: Path) -> None:
    """Drop what an earlier run put together: files that were never synced may have holes. What has
    another name than ours is not touched, and told.

    An empty directory goes, too: Kafka does not start on log directories with one of that name.
    """
    if not directory.is_dir():
        return
    is_empty = True
    for path in sorted(directory.iterdir()):
        if _OURS.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            is_empty = False
            _log.warning("not a segment that was put together, left alone", path=str(path))
    if is_empty:
        directory.rmdir()


def remove(paths: Sequence[str], files: Files) -> None:
    """Remove files, and directories with all that is in them: as many as possible."""
    fault: OSError | None = None
    for path in paths:
        try:
            if Path(path).is_dir():
                shutil.rmtree(path)
                files.forget_under(path)
            else:
                files.remove(path)
        except OSError as error:
            fault = error
    if fault is not None:
        raise fault
