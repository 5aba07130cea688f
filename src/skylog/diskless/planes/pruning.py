"""A prune in steps, each of which drops a limited number of batches: commits go on in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from skylog.diskless.plane import PruneResult
from skylog.kernel.ids import Uuid

Prunes = Sequence[tuple[Uuid, int, int]]


async def prune_in_steps(
    requests: Prunes, step: Callable[[Prunes], Awaitable[Sequence[PruneResult]]]
) -> list[PruneResult]:
    """Repeat ``step`` for the partitions that have not got to their offsets, while any moves."""
    results = list(await step(requests))
    while True:
        short = [
            place
            for place, (result, request) in enumerate(zip(results, requests, strict=True))
            if not result.error and result.wal_start_offset < request[2]
        ]
        if not short:
            return results
        moved = False
        again = await step([requests[place] for place in short])
        for place, result in zip(short, again, strict=True):
            moved = moved or result.wal_start_offset > results[place].wal_start_offset
            results[place] = result
        if not moved:
            # Another prune is under way, which the next call will see; or there are errors.
            return results
