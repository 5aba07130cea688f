"""What ``put_file`` reads: files and buffers, one behind the other.

A source that cannot be read, or has another size than was said, is refused before the object is
complete: an object that is shorter than its segment would be found out only when it is the last
copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from skylog.kernel.executor import Executor
from skylog.objects.store import Buffer, CheckedFile, ObjectError, Outcome, Source


def pieces(source: Source, size: int, piece_bytes: int) -> Iterator[Buffer]:
    """The bytes in pieces of at most ``piece_bytes``. Blocks: not for the event loop."""
    left = size
    for part in source:
        for piece in _pieces_of(part, piece_bytes):
            left -= len(piece)
            if left < 0:
                raise wrong_size(size, "more")
            yield piece
    if left:
        raise wrong_size(size, f"only {size - left}")


def wrong_size(size: int, found: str) -> ObjectError:
    return ObjectError(f"what is to be put has {found} bytes instead of {size}", Outcome.REFUSED)


def unreadable(path: Path, error: OSError) -> ObjectError:
    return ObjectError(f"cannot read {path}: {error.strerror}", Outcome.REFUSED)


def _pieces_of(part: Path | CheckedFile | Buffer, piece_bytes: int) -> Iterator[Buffer]:
    """The bytes of one part, a checked file's behind its check."""
    if isinstance(part, CheckedFile):
        check = part.check()
        for piece in _pieces_of(part.path, piece_bytes):
            check.take(piece)
            yield piece
        check.end()
        return
    if not isinstance(part, Path):
        view = memoryview(part).cast("B")
        for start in range(0, view.nbytes, piece_bytes):
            yield view[start : start + piece_bytes]
        return
    try:
        with part.open("rb", buffering=0) as file:
            while piece := file.read(piece_bytes):
                yield piece
    except OSError as error:
        raise unreadable(part, error) from error


class Upload:
    """Hands the pieces of a source to the library, each read on a thread.

    ``stop`` makes it fail at the next piece. The library then aborts its upload, which it does not
    do when its caller is cancelled.
    """

    def __init__(self, source: Source, size: int, piece_bytes: int, executor: Executor) -> None:
        self._pieces = pieces(source, size, piece_bytes)
        self._executor = executor
        self._stopped = False
        self.failure: ObjectError | None = None

    def stop(self) -> None:
        self._stopped = True

    def __aiter__(self) -> Upload:
        return self

    async def __anext__(self) -> Buffer:
        piece = None
        with suppress(ObjectError):  # kept, since the library may report it as its own
            piece = await self._executor.run(self._next)
        if self._stopped and self.failure is None:
            self.failure = ObjectError("the upload was given up", Outcome.NOT_DONE)
        if self.failure is not None:
            raise self.failure
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _next(self) -> Buffer | None:
        try:
            return next(self._pieces, None)
        except ObjectError as error:
            self.failure = error
            raise
