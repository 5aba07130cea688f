"""A fetch of diskless partitions returns within its limits what logs would return.

It is compared with the rule of Kafka's replica manager over real logs: each partition in turn, at
most its own limit and the rest of the total, and at least one batch as long as nothing was read.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.diskless.reader import ReadRequest, ReadResult
from skylog.log.log import Log
from skylog.wire.batch import Batch, split_batches
from tests.unit.diskless.engine import TOPIC_ID, Engine, item
from tests.unit.diskless.local_world import filler_of
from tests.unit.log.support import NOW, open_log

PARTITIONS = 3
# Partitions with local segments; the other one is read from objects.
HOSTED = range(2)


class Case(NamedTuple):
    # The sizes of the values of each partition's batches.
    values: list[list[int]]
    # Partition, offset and limit, in the order of the fetch.
    wanted: list[tuple[int, int, int]]
    fetch_bytes: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = st.lists(st.integers(0, 900), max_size=6)
    values = draw(st.lists(sizes, min_size=PARTITIONS, max_size=PARTITIONS))
    limit = st.one_of(st.integers(0, 1200), st.integers(0, 8000))
    wanted = [
        (index, draw(st.integers(0, len(values[index]))), draw(limit))
        for index in draw(st.permutations(range(PARTITIONS)))
    ]
    return Case(values, wanted, draw(limit))


def bases(found: Sequence[ReadResult]) -> list[list[int]]:
    return [[one.base_offset for one in split_batches(result.records)] for result in found]


def requests(case: Case) -> list[ReadRequest]:
    return [ReadRequest(TOPIC_ID, *one) for one in case.wanted]


def judged(logs: Sequence[Log], case: Case) -> list[list[int]]:
    found, left, min_one = [], case.fetch_bytes, True
    for index, offset, limit in case.wanted:
        log = logs[index]
        data = log.reader.read(
            offset, min(limit, left), log.log_end_offset, min_one=min_one, block=True
        ).buffer
        min_one = min_one and not data
        left = max(left - len(data), 0)
        found.append([one.base_offset for one in split_batches(data)])
    return found


def by_kind(case: Case) -> Case:
    """Local segments and objects share the budget, the kind of the first request first."""
    first = case.wanted[0][0] in HOSTED
    return case._replace(wanted=sorted(case.wanted, key=lambda one: (one[0] in HOSTED) != first))


def check_limits(case: Case, found: Sequence[ReadResult]) -> None:
    """No first batch may exceed them: another partition has used that exception."""
    total = 0
    for (_, _, limit), result in zip(case.wanted, found, strict=True):
        assert result.size <= min(limit, case.fetch_bytes - total)
        total += result.size


async def compare(case: Case, directory: Path) -> None:
    engine = await Engine().start(PARTITIONS)
    logs = [open_log(directory / "logs" / str(index)) for index in range(PARTITIONS)]
    for index, sizes in enumerate(case.values):
        for size in sizes:
            sent = item(b"x" * size, index)
            logs[index].appender.append([Batch(bytearray(sent.batch.buffer))], 0, NOW)
            await engine.writer.append(1, [sent])
    for reader in (engine.reader, engine.cold()):
        found = await reader.fetch(requests(case), case.fetch_bytes)
        assert bases(found) == judged(logs, case)
    check_limits(case, await engine.reader.fetch(requests(case), case.fetch_bytes, min_one=False))
    mixed = by_kind(case)
    async with filler_of(engine, directory / "copies") as local:
        for index in HOSTED:
            await local.caught_up(len(case.values[index]), index)
        found = await local.fetcher.fetch(requests(mixed), case.fetch_bytes)
        assert bases(found) == judged(logs, mixed)
    for log in logs:
        log.close()


@settings(max_examples=150)
@given(cases())
def test_a_fetch_of_diskless_partitions_is_cut_as_one_of_logs(case: Case) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(compare(case, Path(directory)))
