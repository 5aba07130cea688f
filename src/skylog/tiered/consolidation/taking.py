"""One step of a round: batches are found, read, and appended on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.tiered.consolidation.assembly import Appended, Assembly
from skylog.tiered.consolidation.plan import batches_per_partition, laggards
from skylog.tiered.consolidation.wal import Found, Wanted

if TYPE_CHECKING:
    from skylog.kernel.executor import Executor
    from skylog.log.files import Files
    from skylog.tiered.consolidation.wal import Records, Wal, WalBatch

# Partitions of one question to the coordinators.
FIND_PARTITIONS_MAX: Final = 250
# How often a round asks for more of those that have the most.
AGAIN_MAX: Final = 4
# Objects that do not arrive by then are given up.
READ_SECONDS_MAX: Final = 120.0
# What a round takes of each partition.
Step = Mapping[Assembly, Sequence["WalBatch"]]


class Taken(NamedTuple):
    """What became of one partition's batches."""

    assembly: Assembly
    # None: they were not read.
    appended: Appended | None
    why: KafkaError | None = None


class Taker:
    """Reads the WAL into assemblies; decides nothing."""

    def __init__(self, wal: Wal, files: Files, executor: Executor) -> None:
        self._wal = wal
        self._files = files
        self._executor = executor

    async def find(self, ones: Sequence[Assembly]) -> dict[Assembly, Found]:
        """Where the next batches of each are; more of those that would hold the others up."""
        found = await self._find(ones, batches_per_partition(len(ones)))
        for _ in range(AGAIN_MAX):
            behind = laggards(found)
            more = batches_per_partition(len(behind))
            if all(len(found[one].batches) >= more for one in behind):
                break
            found |= await self._find(behind, more)
        return found

    async def _find(self, ones: Sequence[Assembly], batches_max: int) -> dict[Assembly, Found]:
        found: dict[Assembly, Found] = {}
        for at in range(0, len(ones), FIND_PARTITIONS_MAX):
            some = ones[at : at + FIND_PARTITIONS_MAX]
            wanted = [Wanted(one.partition, one.position) for one in some]
            try:
                answers = await self._wal.find(wanted, batches_max)
            except KafkaError as error:
                answers = [Found(error.code)] * len(some)
            found.update(zip(some, answers, strict=True))
        return found

    async def take(self, step: Step) -> list[Taken]:
        """Read and append what follows on what is there."""
        able = [one for one in step if _follows(one, step[one])]
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                read = await self._wal.read([step[one] for one in able])
        except (KafkaError, TimeoutError) as error:
            late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "objects did not arrive in time")
            why = error if isinstance(error, KafkaError) else late
            return [Taken(one, None, why) for one in able]
        good: list[tuple[Assembly, Records]] = []
        bad: list[Taken] = []
        for one, records in zip(able, read, strict=True):
            if records.error is ErrorCode.NONE:
                good.append((one, records))
            else:
                bad.append(Taken(one, None, KafkaError(records.error)))
        return bad + await self._executor.run(lambda: list(self._append_all(good, step)))

    def _append_all(self, good: Sequence[tuple[Assembly, Records]], step: Step) -> Iterator[Taken]:
        """On a thread; nothing else changes these files meanwhile."""
        for one, records in good:
            yield Taken(one, one.append(records.parts, step[one], self._files))


def _follows(one: Assembly, batches: Sequence[WalBatch]) -> bool:
    """Not if an earlier step of the round failed for it."""
    return not one.is_dropped and batches[0].base_offset <= one.position
