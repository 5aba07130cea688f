"""Objects in a bucket of S3, Google Cloud Storage or Azure, through the obstore library.

Its own retries are off: they are ours (``retrying``). Only ``put_file`` uploads in parts, and only
what is larger than one: a process that dies in between leaves invisible parts that cost money until
a rule of the bucket removes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from skylog.kernel.executor import Executor
from skylog.kernel.limits import (
    OBJECT_KEYS_PER_REQUEST,
    OBJECT_PART_BYTES,
    OBJECT_UPLOADS_END_SECONDS_MAX,
)
from skylog.objects.failures import bucket_missing, outcome_of, parts_outcome_of
from skylog.objects.keys import ObjectKey, checked_prefix, known
from skylog.objects.sources import Upload, pieces
from skylog.objects.store import (
    Exists,
    NotFound,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
    Source,
    check_range,
    joined,
    size_of,
)

if TYPE_CHECKING:
    from obstore import GetOptions, PutMode

Bucket: TypeAlias = S3Store | GCSStore | AzureStore

# The library raises FileNotFoundError for 404, and ValueError for an invalid range or setting.
_FAILURES = (BaseError, OSError, ValueError)


class RemoteStore(ObjectStore):
    """A bucket, or a prefix within one. The executor reads the files that are put."""

    def __init__(
        self,
        bucket: Bucket,
        executor: Executor,
        *,
        part_bytes: int = OBJECT_PART_BYTES,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._bucket = bucket
        self._executor = executor
        self._part_bytes = part_bytes
        self._on_close = on_close
        self._given_up: set[asyncio.Task[object]] = set()

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        mode: PutMode = "create" if if_absent else "overwrite"
        body = joined(data)
        try:
            await self._bucket.put_async(key.text, body, mode=mode, use_multipart=False)
        except _FAILURES as error:
            failure = outcome_of(error, f"put {key}", writes=True)
            if not isinstance(failure, Exists):
                raise failure from error
            if not if_absent:
                # A conflict with a concurrent request; this one had no effect.
                raise ObjectError(str(failure), Outcome.NOT_DONE) from error
            await self._settle(key, data, failure)

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        """One part is on its way while the next is read."""
        if size <= self._part_bytes:
            read = pieces(source, size, self._part_bytes)
            return await self.put(key, await self._executor.run(lambda: list(read)))
        upload = Upload(source, size, self._part_bytes, self._executor)
        putting = asyncio.ensure_future(self._put_parts(key, upload))
        try:
            await asyncio.shield(putting)
        except asyncio.CancelledError:
            upload.stop()
            self._given_up.add(putting)
            putting.add_done_callback(self._ended)
            raise
        return None

    def put_file_requests(self, size: int) -> int:
        parts = -(-size // self._part_bytes)
        return 1 if parts <= 1 else parts + 2  # one to begin, one to complete

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        if end is not None and end <= start:  # not a valid range for a request
            check_range(key, start, end, (await self.head(key)).size)
            return b""
        try:
            result = await self._bucket.get_async(key.text, options=_options(start, end))
            size = result.meta["size"]
            data = (await result.bytes_async()).to_bytes()
        except _FAILURES as error:
            raise outcome_of(error, f"get {key}", writes=False) from error
        first, stop = check_range(key, start, end, size)
        if len(data) != stop - first:
            raise ObjectError(f"{key}: {len(data)} bytes of {stop - first}", Outcome.NOT_DONE)
        return data

    async def head(self, key: ObjectKey) -> ObjectInfo:
        try:
            found = await self._bucket.head_async(key.text)
        except _FAILURES as error:
            raise outcome_of(error, f"head {key}", writes=False) from error
        return ObjectInfo(key, found["size"], _milliseconds(found["last_modified"]))

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        for first in range(0, len(keys), OBJECT_KEYS_PER_REQUEST):
            page = [key.text for key in keys[first : first + OBJECT_KEYS_PER_REQUEST]]
            await self._delete(page)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        last = after or ""
        pages = self._bucket.list(
            checked_prefix(prefix) or None, offset=after, chunk_size=OBJECT_KEYS_PER_REQUEST
        )
        while True:
            try:
                page = await anext(pages, None)
            except _FAILURES as error:
                raise outcome_of(error, f"list {prefix}", writes=False) from error
            if page is None:
                return
            for found in page:
                key = known(found["path"])
                if key is None:
                    continue
                if key.text <= last:
                    raise ObjectError("the bucket does not list in key order", Outcome.REFUSED)
                last = key.text
                yield ObjectInfo(key, found["size"], _milliseconds(found["last_modified"]))

    async def close(self) -> None:
        """Connections end with the library's client."""
        if self._given_up:
            await asyncio.wait(self._given_up, timeout=OBJECT_UPLOADS_END_SECONDS_MAX)
        if self._on_close:
            self._on_close()

    async def _put_parts(self, key: ObjectKey, upload: Upload) -> None:
        """The library aborts the upload if a part or the source fails."""
        try:
            await self._bucket.put_async(
                key.text,
                upload,
                mode="overwrite",
                use_multipart=True,
                chunk_size=self._part_bytes,
                max_concurrency=1,
            )
        except (*_FAILURES, ObjectError) as error:
            failure = upload.failure or parts_outcome_of(error, f"put {key} in parts")
            raise failure from error

    def _ended(self, putting: asyncio.Task[object]) -> None:
        self._given_up.discard(putting)
        if not putting.cancelled():
            putting.exception()  # its caller is gone

    async def _delete(self, page: Sequence[str]) -> None:
        try:
            await self._bucket.delete_async(page)
        except _FAILURES as error:
            failure = outcome_of(error, f"delete of {len(page)}", writes=True)
            if not isinstance(failure, NotFound) or bucket_missing(failure):
                raise failure from error
            if len(page) > 1:  # the store stopped at an absent key; some may remain
                for text in page:
                    await self._delete([text])

    async def _settle(self, key: ObjectKey, data: Payload, failure: ObjectError) -> None:
        """The store reported a conflict: compare the bytes that are there, if any."""
        try:
            if (await self.head(key)).size == size_of(data) and await self.get(key) == joined(data):
                return
        except NotFound as error:
            raise ObjectError(f"put {key}: undecided conflict", Outcome.NOT_DONE) from error
        except ObjectError as error:
            raise ObjectError(f"put {key}: conflict, then {error}", Outcome.AMBIGUOUS) from error
        raise failure


def _options(start: int, end: int | None) -> GetOptions:
    if end is not None:
        return {"range": (start, end)}
    # The whole object is requested without a range: an empty one has none.
    return {"range": {"offset": start}} if start else {}


def _milliseconds(when: datetime) -> int:
    return round(when.timestamp() * 1000)
