"""A small disk for a node's data that can be filled. Needs root."""

from __future__ import annotations

import errno
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

SIZE_BYTES = 256 << 20
_FILLER = "filler"


class SmallDisk:
    """Moves the contents of a directory to a separate file system, and back at the end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __enter__(self) -> Self:
        with tempfile.TemporaryDirectory() as aside:
            shutil.copytree(self.directory, aside, dirs_exist_ok=True)
            _run("mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(self.directory))
            shutil.copytree(aside, self.directory, dirs_exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.free()
        with tempfile.TemporaryDirectory() as aside:
            shutil.copytree(self.directory, aside, dirs_exist_ok=True)
            _run("umount", "--lazy", str(self.directory))
            shutil.copytree(aside, self.directory, dirs_exist_ok=True)

    def fill(self) -> None:
        """Write until no page is free."""
        with (self.directory / _FILLER).open("wb", buffering=0) as filler:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        (self.directory / _FILLER).unlink(missing_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
