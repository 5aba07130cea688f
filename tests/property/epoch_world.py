"""A bucket, brokers and drivers on virtual time, for histories of the exactly-once protocol.

Every operation yields to the scheduler before and after its effect: a driver can crash, or sleep
for days, after an effect whose response it never sees.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from skylog.bulk.encode import RowEncoder, TopicTarget
from skylog.bulk.epoch import PIN_LIFETIME_MS, Attempt, EpochFailed
from skylog.bulk.staging import EpochCommitter, Stager, StagingArea
from skylog.client.bulk import CommitStagedResult, PinResult, StagedObject
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import Exists, NotFound, ObjectInfo

COMMIT_AGE_MS = 10 * 60 * 1000
ANSWERS_KEPT_MS = 2 * 60 * 60 * 1000
DAY_MS = 24 * 60 * 60 * 1000
PIN_AGE_MS = DAY_MS
ORPHAN_GRACE_MS = DAY_MS + 60 * 60 * 1000
PREFIX = "staging/0123456789abcdef/"
TARGETS = {"t": TopicTarget("t", 2)}


class Turn:
    """Awaiting it lets the scheduler choose which driver continues."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Bucket:
    def __init__(self, clock: ManualClock) -> None:
        self.objects: dict[ObjectKey, bytes] = {}
        self._clock = clock

    async def put(self, key: ObjectKey, data: Any, *, if_absent: bool = False) -> None:
        given = data if isinstance(data, bytes) else b"".join(data)
        await Turn()
        if if_absent and self.objects.get(key, given) != given:
            raise Exists(key.text)
        self.objects[key] = given
        await Turn()

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        await Turn()
        if key not in self.objects:
            raise NotFound(key.text)
        found = self.objects[key]
        await Turn()
        return found[start:end]

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        await Turn()
        found = [key for key in sorted(self.objects) if key.text.startswith(prefix)]
        await Turn()
        for key in found:
            yield ObjectInfo(key, 0, self._clock.now_ms())

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        for key in keys:
            await Turn()
            self.objects.pop(key, None)


class Brokers:
    """Pins, commits and deletions, by the rules that brokers guarantee."""

    def __init__(self, clock: ManualClock, bucket: Bucket) -> None:
        self._clock = clock
        self._bucket = bucket
        self.pins: dict[str, int] = {}
        self.files: dict[str, int] = {}  # files that coordinators know, and since when
        self.answers: dict[str, int] = {}  # commits that are remembered, and since when
        self.log: list[tuple[int, str]] = []  # (epoch, key), in order of commit

    def _is_pinned(self, key: str) -> bool:
        return self.pins.get(key, 0) > self._clock.now_ms()

    def _is_late(self, key: str, age_ms_max: int) -> bool:
        created = ObjectKey.parse(key).created_ms
        assert created is not None
        return self._clock.now_ms() - created > age_ms_max and not self._is_pinned(key)

    def _cannot_commit(self, key: str) -> bool:
        return self._is_late(key, COMMIT_AGE_MS) or ObjectKey.parse(key) not in self._bucket.objects

    async def pin(
        self,
        writer: str,
        epoch: int,
        objects: Sequence[StagedObject],
        lifetime_ms: int,
        *,
        release: bool = False,
    ) -> list[PinResult]:
        results = []
        for one in objects:
            await Turn()
            if release:
                self.pins.pop(one.key, None)
            elif self._is_late(one.key, PIN_AGE_MS):
                results.append(PinResult(ErrorCode.INVALID_REQUEST, "too old"))
                continue
            else:
                self.pins[one.key] = self._clock.now_ms() + lifetime_ms
            results.append(PinResult(ErrorCode.NONE, None, self.pins.get(one.key, -1)))
        await Turn()
        return results

    async def commit(
        self, writer: str, epoch: int, objects: Sequence[StagedObject]
    ) -> list[CommitStagedResult]:
        results = []
        for one in objects:
            await Turn()
            if one.key in self.files or one.key in self.answers:
                results.append(CommitStagedResult(ErrorCode.NONE))
            elif self._cannot_commit(one.key):
                results.append(CommitStagedResult(ErrorCode.INVALID_REQUEST, "too late"))
            else:
                self.files[one.key] = self.answers[one.key] = self._clock.now_ms()
                self.log.append((epoch, one.key))
                results.append(CommitStagedResult(ErrorCode.NONE))
        await Turn()
        return results

    def maintain(self, retention_ms: int) -> None:
        """Retention, the memory of answers, and the orphan scan."""
        now = self._clock.now_ms()
        for key, since in list(self.files.items()):
            if now - since > retention_ms:
                del self.files[key]
                self._bucket.objects.pop(ObjectKey.parse(key), None)
        for key, since in list(self.answers.items()):
            if now - since > ANSWERS_KEPT_MS and not self._is_pinned(key):
                del self.answers[key]
        for found in list(self._bucket.objects):
            old = found.created_ms is not None and now - found.created_ms > ORPHAN_GRACE_MS
            if old and found.text not in self.files and not self._is_pinned(found.text):
                del self._bucket.objects[found]


@dataclass
class World:
    rng: random.Random
    clock: ManualClock = field(default_factory=ManualClock)
    bucket: Bucket = field(init=False)
    brokers: Brokers = field(init=False)
    attempts: dict[str, tuple[int, int]] = field(default_factory=dict)  # key → epoch, attempt
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    finished: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    begun_ms: dict[int, int] = field(default_factory=dict)
    tries: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        self.bucket = Bucket(self.clock)
        self.brokers = Brokers(self.clock, self.bucket)

    def area(self) -> StagingArea:
        return StagingArea(self.brokers, self.bucket, PREFIX, self.clock, self.rng)

    async def epoch(self, epoch: int, objects: int = 2) -> Attempt | None:
        """One attempt at an epoch: a task that stages its objects, then the driver."""
        self.tries += 1
        attempt = self.tries
        self.begun_ms.setdefault(epoch, self.clock.now_ms())
        try:
            return await self._attempt(epoch, attempt, objects)
        except EpochFailed:
            # Allowed only when the pins of a manifest have expired.
            assert self.clock.now_ms() - self.begun_ms[epoch] >= PIN_LIFETIME_MS
            self.failed.add(epoch)
        except KafkaError:
            self.refused += 1  # too slow between staging and pinning: a new attempt may do better
        return None

    async def _attempt(self, epoch: int, attempt: int, objects: int) -> Attempt:
        area = self.area()
        stager = Stager(area, 1 << 20)
        staged: list[StagedObject] = []
        for index in range(objects):
            value = f"{epoch}/{index}".encode()
            batches = RowEncoder(topic="t").encode(pa.record_batch({"value": [value]}), TARGETS, 1)
            staged += await stager.stage(batches)
            self.attempts[staged[-1].key] = (epoch, attempt)
            self.sizes[epoch, attempt] += 1
        found = await EpochCommitter(area, "writer").complete(epoch, staged)
        self.finished.add(epoch)
        return found

    def check(self) -> None:
        """No object is committed twice, and of each epoch one attempt only, all of it once it is
        finished."""
        keys = [key for _, key in self.brokers.log]
        assert len(keys) == len(set(keys)), "an object was committed twice"
        seen: dict[int, set[int]] = {}
        counts: Counter[tuple[int, int]] = Counter()
        for key in keys:
            epoch, attempt = self.attempts[key]
            seen.setdefault(epoch, set()).add(attempt)
            counts[epoch, attempt] += 1
        for epoch, attempts in seen.items():
            assert len(attempts) == 1, f"epoch {epoch} was written by attempts {attempts}"
        for key in self.brokers.files:
            assert ObjectKey.parse(key) in self.bucket.objects, "committed rows were deleted"
        for epoch in self.finished:
            assert epoch in seen, f"epoch {epoch} is marked as written and is not"
            (attempt,) = seen[epoch]
            assert counts[epoch, attempt] == self.sizes[epoch, attempt], f"epoch {epoch} lacks rows"


def advance(work: Coroutine[Any, Any, Any]) -> bool:
    """One turn of a driver; returns whether it continues."""
    try:
        work.send(None)
    except StopIteration:
        return False
    return True


def run(work: Coroutine[Any, Any, Any], turns: int | None = None) -> int:
    """Run a driver alone, to its end or to a crash after some turns; returns their number."""
    done = 0
    while turns is None or done < turns:
        if not advance(work):
            return done
        done += 1
    work.close()
    return done
