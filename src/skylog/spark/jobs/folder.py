"""The output of jobs: a directory or a bucket, anything that pyarrow can open.

Files are written atomically: under a name that is unique to the attempt of a task, and moved to
their place when they are complete.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from pyarrow import fs

from skylog.kernel.errors import ConfigError
from skylog.wire.buffers import Buffer

_LOCK: Final = "_skylog.lock"
_UNFINISHED: Final = ".new"


@dataclass(frozen=True, slots=True)
class Folder:
    """A path in a file system; can be sent to executors."""

    url: str

    @classmethod
    def at(cls, text: str) -> Folder:
        """A URL, or a path of this machine, whether it exists or not."""
        return cls(text if "://" in text else Path(text).absolute().as_uri())

    @classmethod
    def of(cls, text: str) -> Folder:
        """Like ``at``; ConfigError if it cannot be written to."""
        folder = cls.at(text)
        try:
            system, path = folder._open()
            system.create_dir(path, recursive=True)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{text} cannot be written to: {error}") from error
        return folder

    def _open(self) -> tuple[Any, str]:
        system, path = fs.FileSystem.from_uri(self.url)
        return system, path

    def below(self, name: str) -> Folder:
        return Folder(f"{self.url.rstrip('/')}/{name}")

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A new file, or a new version of one; after an error it does not exist."""
        system, path = self._open()
        system.create_dir(path, recursive=True)
        # The library may still complete an upload that is only dropped, so it is closed.
        place = f"{path}/{name}.{uuid4().hex}{_UNFINISHED}"
        try:
            with system.open_output_stream(place) as stream:
                yield stream
        except BaseException:
            with suppress(FileNotFoundError):
                system.delete_file(place)
            raise
        system.move(place, f"{path}/{name}")

    def write(self, name: str, parts: Iterable[Buffer]) -> None:
        with self.writing(name) as stream:
            for part in parts:
                stream.write(part)

    def write_json(self, name: str, value: Any) -> None:
        self.write(name, [json.dumps(value, indent=1).encode() + b"\n"])

    def read(self, name: str) -> bytes | None:
        """The whole file, None if it does not exist."""
        system, path = self._open()
        try:
            with system.open_input_stream(f"{path}/{name}") as stream:
                data: bytes = stream.read()
        except FileNotFoundError:
            return None
        return data

    def read_json(self, name: str) -> Any:
        """None if it does not exist."""
        data = self.read(name)
        return None if data is None else json.loads(data)

    def move(self, name: str, target: Folder) -> None:
        """Move a file to another folder of the same file system; moving it again is harmless."""
        system, path = self._open()
        if system.get_file_info(f"{path}/{name}").type == fs.FileType.NotFound:
            return
        _, where = target._open()
        system.create_dir(where, recursive=True)
        system.move(f"{path}/{name}", f"{where}/{name}")

    def remove(self, name: str | None = None) -> None:
        """Remove a file, or a folder with its contents; it need not exist."""
        system, path = self._open()
        try:
            if name is None:
                system.delete_dir(path)
            else:
                system.delete_file(f"{path}/{name}")
        except FileNotFoundError:
            return

    @contextmanager
    def alone(self, name: str = _LOCK) -> Iterator[bool]:
        """Lock the folder against other runs; ConfigError if one has it. False: a bucket cannot."""
        system, path = self._open()
        if not isinstance(system, fs.LocalFileSystem):
            yield False
            return
        Path(path).mkdir(parents=True, exist_ok=True)
        with Path(path, name).open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(f"{path} is in use by another run of this job") from None
            yield True

    def names(self) -> list[str]:
        system, path = self._open()
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(info.base_name for info in found)
