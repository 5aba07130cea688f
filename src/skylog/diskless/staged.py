"""Staged objects of bulk writers: validated like a produce request, then committed.

The writer has put the object into the bucket itself, so nothing it claims is trusted: size,
extents, headers, checksums and every record are checked against the bytes. One refused batch
refuses the object, so that its writer may retry with the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skylog.diskless.batch import CREATE_TIME, LOG_APPEND_TIME, BatchToCommit, Extent, Stamp
from skylog.diskless.layout import HEADER, VERSION, check_places
from skylog.diskless.plane import CommitResult, ControlPlane, FileToCommit
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import Executor
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import STAGED_OBJECT_BYTES_MAX
from skylog.objects.keys import BadKey, ObjectKey
from skylog.objects.store import NotFound, ObjectError, ObjectStore
from skylog.wire.apis import ApiKey, request_class
from skylog.wire.batch import Batch, batch_size
from skylog.wire.topic_rules import PRODUCER, TopicRules
from skylog.wire.validation import validate


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """A batch as described by its writer, and the rules of its topic."""

    topic_id: Uuid
    partition: int
    extent: Extent
    rules: TopicRules


@dataclass(frozen=True, slots=True)
class StagedObject:
    key: ObjectKey
    size: int
    batches: Sequence[StagedBatch]


class Refused(Exception):  # noqa: N818 - reads well without Error
    """Some batches of an object are invalid: an error or None for each batch, in order."""

    def __init__(self, errors: Sequence[KafkaError | None]) -> None:
        super().__init__(str(next(filter(None, errors))))
        self.errors = errors


def staged_key(text: str, owner: str) -> ObjectKey:
    """The key of an object that ``owner`` has staged."""
    try:
        key = ObjectKey.parse(text)
    except BadKey as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    if key.kind != "staging" or key.created_ms is None:
        raise _invalid(f"{key} is not the key of a staged object")
    if key.owner != owner:
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{key} was staged by another principal"
        )
    return key


def check_extents(size: int, batches: Sequence[StagedBatch]) -> None:
    """Before reading it: the object must have an allowed size, and the batches must be within
    it."""
    if not batches:
        raise _invalid("an object without batches")
    if size > STAGED_OBJECT_BYTES_MAX:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"an object of {size} bytes; the limit is {STAGED_OBJECT_BYTES_MAX}",
        )
    check_places((batch.extent for batch in batches), size)


def check_object(data: bytes, staged: StagedObject, now_ms: int) -> list[BatchToCommit]:
    """The batches to commit; may take long. Raises ``Refused``."""
    if data[: len(HEADER)] != HEADER:
        raise _invalid(f"an object of version {data[0]}, not {VERSION}")
    view = memoryview(data)
    found: list[BatchToCommit] = []
    errors: list[KafkaError | None] = []
    for batch in staged.batches:
        try:
            found.append(_checked(view, batch, now_ms))
            errors.append(None)
        except KafkaError as error:
            errors.append(error)
    if any(errors):
        raise Refused(errors)
    return found


def _checked(view: memoryview, staged: StagedBatch, now_ms: int) -> BatchToCommit:
    extent = staged.extent
    piece = view[extent.byte_offset : extent.end]
    size = batch_size(piece, 0)
    if size != extent.byte_size:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{extent.byte_size} bytes for a batch of {size}"
        )
    said = Batch(piece)
    if said.has_producer or said.producer_epoch >= 0 or said.is_transactional:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a staged batch has no producer")
    # The bytes are not changed: nothing is recompressed, and all records are validated.
    rules = replace(staged.rules, compression_type=PRODUCER, full=True)
    version = request_class(ApiKey.PRODUCE).VERSIONS.high
    checked = validate(bytearray(piece), rules, now_ms, version)
    stamped = checked.log_append_time >= 0
    if not stamped and checked.batch.max_timestamp != said.max_timestamp:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"the header's largest timestamp is {said.max_timestamp},"
            f" the records' {checked.batch.max_timestamp}",
        )
    return BatchToCommit(
        topic_id=staged.topic_id,
        partition=staged.partition,
        extent=extent,
        stamp=Stamp(
            base_offset=0,
            last_offset=said.last_offset_delta,
            batch_max_timestamp=checked.batch.max_timestamp,
            timestamp_type=LOG_APPEND_TIME if stamped else CREATE_TIME,
        ),
    )


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)


class StagedCommits:
    """Commits objects, one call for each. All calls come from the event loop."""

    def __init__(
        self,
        store: ObjectStore,
        plane: ControlPlane,
        clock: Clock,
        validators: Executor,
        broker_id: int,
    ) -> None:
        self._store = store
        self._plane = plane
        self._clock = clock
        self._validators = validators
        self._broker_id = broker_id

    async def commit(self, staged: StagedObject) -> list[CommitResult]:
        """Raises ``Refused``, or a KafkaError for the whole object, which may be committed only if
        the error is ambiguous."""
        check_extents(staged.size, staged.batches)
        first = await self._first_answer(staged)
        if first is not None:
            return first
        data = await self._read(staged)
        # A pinned object may be days old: its timestamps are compared to when it was written.
        created_ms = staged.key.created_ms or self._clock.now_ms()
        batches = await self._validators.run(lambda: check_object(data, staged, created_ms))
        return await self._plane.commit_file(self._file(staged, batches))

    async def _first_answer(self, staged: StagedObject) -> list[CommitResult] | None:
        """The result of an earlier commit, even if object and topic have been deleted since."""
        asked = [
            BatchToCommit(
                topic_id=batch.topic_id,
                partition=batch.partition,
                extent=batch.extent,
                stamp=Stamp(base_offset=0, last_offset=0),
            )
            for batch in staged.batches
        ]
        try:
            results = await self._plane.commit_file(
                replace(self._file(staged, asked), known_only=True)
            )
        except KafkaError as error:
            if error.code is ErrorCode.RESOURCE_NOT_FOUND:
                return None
            raise
        # A file of several coordinators may be known to only some of them.
        missing = any(result.error is ErrorCode.RESOURCE_NOT_FOUND for result in results)
        return None if missing else results

    def _file(self, staged: StagedObject, batches: Sequence[BatchToCommit]) -> FileToCommit:
        return FileToCommit(
            object_key=staged.key.text,
            size=staged.size,
            batches=batches,
            uploader_broker_id=self._broker_id,
        )

    async def _read(self, staged: StagedObject) -> bytes:
        """The whole object, after checking that it has the stated size."""
        try:
            info = await self._store.head(staged.key)
            if info.size != staged.size:
                raise _invalid(f"{staged.key} has {info.size} bytes, not {staged.size}")
            return await self._store.get(staged.key, 0, staged.size)
        except NotFound as error:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"no object {staged.key}") from error
        except ObjectError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
