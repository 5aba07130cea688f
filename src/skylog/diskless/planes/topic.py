"""The control plane over coordinators (KIP-1164), wherever they are led.

Every partition has its coordinator; a call is divided among them, and their results are returned in
the order of the request. A file whose batches belong to several coordinators is committed with each
of them and exists until all have released it. Background work (retention and file deletion) is done
by the broker that leads the coordinator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from skylog.diskless.bulk import LocatedRange, PinRequest, PlannedRange, RangeRequest
from skylog.diskless.coordinator import inspection
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.plane import (
    CommitResult,
    CoordinatorInfo,
    CoordinatorOf,
    DeleteRecordsResult,
    DescribeFileResult,
    FileInfo,
    FileToCommit,
    FindRequest,
    FindResult,
    HighWatermarkListener,
    ListOffsetsResult,
    LogInfo,
    PruneResult,
    RetentionResult,
    TopicPartition,
    Unsubscribe,
)
from skylog.diskless.planes import pins_by_coordinator
from skylog.diskless.planes.calls import all_done, outcomes_of
from skylog.diskless.planes.coordinators import Coordinators
from skylog.diskless.planes.handover import Handover
from skylog.diskless.planes.pruning import prune_in_steps
from skylog.diskless.rules import offsets
from skylog.diskless.rules.commits import check_file
from skylog.diskless.rules.pins import is_staged
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_UNSETTLED_FILES_MAX
from skylog.kernel.rng import Random, shuffled

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
# Coordinators in the order of ownership, with the indexes of their batches in the file.
_Division: TypeAlias = dict[int, list[int]]

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
# The coordinator whose leader does the work that one broker does for all.
_CARETAKER: Final = 0


class TopicPlane:
    """See ``plane.ControlPlane``."""

    def __init__(
        self, coordinators: Coordinators, coordinator_of: CoordinatorOf, rng: Random
    ) -> None:
        self._coordinators = coordinators
        self._coordinator_of = coordinator_of
        self._rng = rng
        self._handover = Handover(coordinators)
        # How files of unknown outcome were divided: a repetition must be divided the same way.
        self._unsettled: dict[str, _Division] = {}

    async def start(self) -> None:
        await self._coordinators.loaded()

    async def loaded(self) -> None:
        await self._coordinators.loaded()

    async def close(self) -> None:
        await self._coordinators.close()

    # Duties

    @property
    def is_durable(self) -> bool:
        return True

    def owns(self, partition: TopicPartition) -> bool:
        return self._coordinator_of(partition) in self._coordinators.led()

    def owns_files(self) -> bool:
        """Only for files and topics of coordinators led here."""
        return True

    def is_caretaker(self) -> bool:
        return _CARETAKER in self._coordinators.led()

    def reaches_all(self) -> bool:
        return self._coordinators.all_led()

    def other_brokers(self) -> list[int]:
        return sorted(set(self._coordinators.elsewhere().values()))

    # Topics

    async def create_partitions(self, topics: Sequence[tuple[Uuid, str, int]]) -> None:
        wanted: dict[int, list[tuple[Uuid, str, list[int]]]] = {}
        for topic_id, name, total in topics:
            indexes: dict[int, list[int]] = {}
            for index in range(total):
                coordinator_id = self._coordinator_of((topic_id, index))
                if coordinator_id is None:
                    raise KafkaError(
                        ErrorCode.COORDINATOR_NOT_AVAILABLE,
                        f"no coordinator yet for {name}-{index}",
                    )
                indexes.setdefault(coordinator_id, []).append(index)
            for coordinator_id, held in indexes.items():
                wanted.setdefault(coordinator_id, []).append((topic_id, name, held))
        await all_done(
            self._coordinators.submit(coordinator_id, ask.CreatePartitions(part))
            for coordinator_id, part in wanted.items()
        )

    async def delete_topics(self, topic_ids: Sequence[Uuid]) -> None:
        request = ask.DeleteTopics(topic_ids)
        await all_done(
            self._coordinators.submit(coordinator_id, request)
            for coordinator_id in self._coordinators.all()
        )

    # Commits

    def coordinator_of(self, partition: TopicPartition) -> int | None:
        return self._coordinator_of(partition)

    async def commit_part(self, file: FileToCommit, coordinator_id: int) -> list[CommitResult]:
        """The coordinator validates it."""
        results: list[CommitResult] = await self._coordinators.submit(
            coordinator_id, ask.CommitFile(file)
        )
        return results

    async def commit_file(self, file: FileToCommit) -> list[CommitResult]:
        check_file(file)
        division = self._unsettled.pop(file.object_key, None) or self._divide(file)
        if not division:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "no coordinator is led here")
        owners = (
            file.coordinator_ids if set(division) <= set(file.coordinator_ids) else tuple(division)
        )
        # If the caller is cancelled, or the outcome is unknown, the repetition needs it.
        self._keep_division(file.object_key, division)
        outcomes = await asyncio.gather(
            *(
                self.commit_part(
                    replace(
                        file,
                        batches=[file.batches[place] for place in places],
                        coordinator_ids=owners,
                    ),
                    coordinator_id,
                )
                for coordinator_id, places in division.items()
            ),
            return_exceptions=True,
        )
        return self._merge(file, division, outcomes)

    def _divide(self, file: FileToCommit) -> _Division:
        """Batches of partitions without a coordinator go with the others, to be refused there."""
        places: _Division = {}
        unknown = []
        for place, batch in enumerate(file.batches):
            coordinator_id = self._coordinator_of(batch.topic_partition)
            if coordinator_id is None:
                unknown.append(place)
            else:
                places.setdefault(coordinator_id, []).append(place)
        if unknown or not places:
            coordinator_ids = sorted(places) or self._coordinators.all()[:1]
            for coordinator_id in coordinator_ids[:1]:
                places[coordinator_id] = sorted([*places.get(coordinator_id, []), *unknown])
        # In random order, which spreads the work of owning files evenly; but always in the same
        # order for a staged file, whose commit may be repeated by a broker that does not know of
        # the first.
        coordinator_ids = sorted(places)
        if coordinator_ids and is_staged(file.object_key):
            first = int(file.object_key[-2:], 16) % len(coordinator_ids)
            coordinator_ids = coordinator_ids[first:] + coordinator_ids[:first]
        else:
            coordinator_ids = shuffled(coordinator_ids, self._rng)
        return {coordinator_id: places[coordinator_id] for coordinator_id in coordinator_ids}

    def _keep_division(self, object_key: str, division: _Division) -> None:
        if len(self._unsettled) >= DISKLESS_UNSETTLED_FILES_MAX:
            del self._unsettled[next(iter(self._unsettled))]
        self._unsettled[object_key] = division

    def _merge(
        self,
        file: FileToCommit,
        division: _Division,
        outcomes: Sequence[list[CommitResult] | BaseException],
    ) -> list[CommitResult]:
        """If the outcome of one part is unknown, so is the whole; errors of parts go to their
        batches."""
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for error in errors:
            if not isinstance(error, KafkaError) or error.ambiguous:
                raise error
        self._unsettled.pop(file.object_key, None)
        if len(errors) == len(outcomes):
            raise errors[0]
        results: list[CommitResult] = [CommitResult(UNKNOWN)] * len(file.batches)
        for places, outcome in zip(division.values(), outcomes, strict=True):
            if isinstance(outcome, KafkaError):
                refused = CommitResult(outcome.code, message=str(outcome))
                part = [refused] * len(places)
            else:
                part = outcome  # type: ignore[assignment]
            for place, result in zip(places, part, strict=True):
                results[place] = result
        return results

    # Reads

    async def find_batches(
        self,
        requests: Sequence[FindRequest],
        fetch_max_bytes: int,
        max_batches_per_partition: int = 0,
    ) -> list[FindResult]:
        async def call(coordinator_id: int, part: list[FindRequest]) -> list[FindResult]:
            request = ask.FindBatches(part, fetch_max_bytes, max_batches_per_partition)
            found: list[FindResult] = await self._coordinators.find(coordinator_id, request)
            return found

        where = [(request.topic_id, request.partition) for request in requests]
        results, several = await self._divided(where, requests, call, FindResult)
        if not several:
            return results
        # Each coordinator was given the whole budget; now it is spent in the order of the request.
        budget = offsets.FindBudget(fetch_max_bytes, max_batches_per_partition)
        return [budget.cut(*pair) for pair in zip(results, requests, strict=True)]

    async def plan_ranges(
        self, requests: Sequence[RangeRequest], split_bytes: int, max_batches: int
    ) -> list[PlannedRange]:
        return await self._look(
            requests, lambda part: ask.PlanRanges(part, split_bytes, max_batches), PlannedRange
        )

    async def locate_batches(
        self, requests: Sequence[RangeRequest], max_batches: int
    ) -> list[LocatedRange]:
        return await self._look(
            requests, lambda part: ask.LocateBatches(part, max_batches), LocatedRange
        )

    async def _look(
        self,
        requests: Sequence[RangeRequest],
        request_of: Callable[[list[RangeRequest]], ask.Look],
        result_of: Callable[[ErrorCode], ResultT],
    ) -> list[ResultT]:
        """Runs concurrently with the coordinators' other work."""

        async def call(coordinator_id: int, part: list[RangeRequest]) -> list[ResultT]:
            found: list[ResultT] = await self._coordinators.look(coordinator_id, request_of(part))
            return found

        where = [request.topic_partition for request in requests]
        return (await self._divided(where, requests, call, result_of))[0]

    async def list_offsets(
        self, requests: Sequence[tuple[Uuid, int, int]], *, from_offset: int = 0
    ) -> list[ListOffsetsResult]:
        return await self._submit_parts(
            requests, lambda part: ask.ListOffsets(part, from_offset), ListOffsetsResult
        )

    async def known_topics(self) -> list[Uuid]:
        found: list[list[Uuid]] = await asyncio.gather(
            *(
                self._coordinators.find(coordinator_id, ask.KnownTopics())
                for coordinator_id in self._coordinators.led()
            )
        )
        return list(set().union(*found))

    async def log_info(self, partitions: Sequence[TopicPartition]) -> list[LogInfo]:
        async def call(coordinator_id: int, part: list[TopicPartition]) -> list[LogInfo]:
            found: list[LogInfo] = await self._coordinators.find(
                coordinator_id, ask.DescribeLogs(part)
            )
            return found

        return (await self._divided(partitions, partitions, call, LogInfo))[0]

    # Deletion

    async def delete_records(
        self, requests: Sequence[tuple[Uuid, int, int]]
    ) -> list[DeleteRecordsResult]:
        return await self._submit_parts(requests, ask.DeleteRecords, DeleteRecordsResult)

    async def enforce_retention(
        self, requests: Sequence[tuple[Uuid, int, int, int]], max_batches: int
    ) -> list[RetentionResult]:
        return await self._submit_parts(
            requests, lambda part: ask.EnforceRetention(part, max_batches), RetentionResult
        )

    async def prune_to(self, requests: Sequence[tuple[Uuid, int, int]]) -> list[PruneResult]:
        return await prune_in_steps(
            requests, lambda part: self._submit_parts(part, ask.PruneTo, PruneResult)
        )

    # Files

    async def pin_files(self, pins: Sequence[PinRequest]) -> list[KafkaError | None]:
        return await pins_by_coordinator.pin_files(self._coordinators, self._coordinator_of, pins)

    async def release_pins(self, keys: Sequence[str]) -> None:
        await pins_by_coordinator.release_pins(self._coordinators, keys)

    async def describe_files(self, keys: Sequence[str]) -> list[DescribeFileResult]:
        return await self._handover.describe_files(keys)

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        return await self._handover.files_to_delete(marked_before_ms, limit)

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        await self._handover.confirm_deleted(keys)

    async def list_files(self, after: str, limit: int) -> list[FileInfo]:
        return await inspection.list_files(self._coordinators.local, after, limit)

    async def describe_coordinators(self) -> list[CoordinatorInfo]:
        return await inspection.describe_coordinators(self._coordinators.local)

    def watch(self, listener: HighWatermarkListener) -> Unsubscribe:
        return self._coordinators.watch(listener)

    # Division

    async def _submit_parts(
        self,
        requests: Sequence[ItemT],
        request_of: Callable[[list[ItemT]], Any],
        result_of: Callable[[ErrorCode], ResultT],
    ) -> list[ResultT]:
        """Submit items that begin with topic id and partition to their coordinators."""

        async def call(coordinator_id: int, part: list[ItemT]) -> list[ResultT]:
            found: list[ResultT] = await self._coordinators.submit(coordinator_id, request_of(part))
            return found

        where = [(item[0], item[1]) for item in requests]  # type: ignore[index]
        return (await self._divided(where, requests, call, result_of))[0]

    async def _divided(
        self,
        where: Sequence[TopicPartition],
        items: Sequence[ItemT],
        call: Callable[[int, list[ItemT]], Coroutine[Any, Any, list[ResultT]]],
        result_of: Callable[[ErrorCode], ResultT],
    ) -> tuple[list[ResultT], bool]:
        """The results in order, and whether they came from several coordinators.

        If a coordinator refuses the whole request, its items get the error.
        """
        places: dict[int, list[int]] = {}
        for place, partition in enumerate(where):
            coordinator_id = self._coordinator_of(partition)
            if coordinator_id is not None:
                places.setdefault(coordinator_id, []).append(place)
        results = [result_of(UNKNOWN)] * len(items)
        calls = [
            call(coordinator_id, [items[place] for place in held])
            for coordinator_id, held in places.items()
        ]
        for held, outcome in zip(places.values(), await outcomes_of(calls), strict=True):
            if isinstance(outcome, KafkaError):
                part = [result_of(outcome.code)] * len(held)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                part = outcome
            for place, result in zip(held, part, strict=True):
                results[place] = result
        return results, len(places) > 1
