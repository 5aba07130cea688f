"""Pins of the topic plane: every coordinator that owns a staged object must have its pin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from skylog.diskless.bulk import PinRequest
from skylog.diskless.coordinator import requests as ask
from skylog.diskless.plane import CoordinatorOf, TopicPartition
from skylog.diskless.planes.coordinators import Coordinators
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import DISKLESS_PINS_PER_WRITE_MAX

T = TypeVar("T")


async def pin_files(
    coordinators: Coordinators, coordinator_of: CoordinatorOf, pins: Sequence[PinRequest]
) -> list[KafkaError | None]:
    """A pin that only some coordinators accept is harmless, and expires."""
    results: list[KafkaError | None] = [None] * len(pins)
    held: dict[int, list[tuple[int, PinRequest]]] = {}
    for place, pin in enumerate(pins):
        partitions: dict[int | None, list[TopicPartition]] = {}
        for partition in pin.partitions:
            partitions.setdefault(coordinator_of(partition), []).append(partition)
        if partitions.pop(None, None) or not partitions:
            results[place] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        for coordinator_id, owned in partitions.items():
            if coordinator_id is not None:
                held.setdefault(coordinator_id, []).append((place, replace(pin, partitions=owned)))

    async def pin_at(coordinator_id: int, part: Sequence[tuple[int, PinRequest]]) -> None:
        request = ask.PinFiles([pin for _, pin in part])
        answers: list[KafkaError | None]
        try:
            answers = await coordinators.submit(coordinator_id, request)
        except KafkaError as error:
            answers = [error.without_frames()] * len(part)
        for (place, _), answer in zip(part, answers, strict=True):
            results[place] = results[place] or answer

    await asyncio.gather(
        *(
            pin_at(coordinator_id, part)
            for coordinator_id, owned in held.items()
            for part in _parts(owned)
        )
    )
    return results


async def release_pins(coordinators: Coordinators, keys: Sequence[str]) -> None:
    """Release at all coordinators; if one cannot answer now, the caller must repeat the call."""
    await asyncio.gather(
        *(
            coordinators.submit(coordinator_id, ask.ReleasePins(part))
            for coordinator_id in coordinators.all()
            for part in _parts(keys)
        )
    )


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts that each fit into one batch of a coordinator's log."""
    for first in range(0, len(items), DISKLESS_PINS_PER_WRITE_MAX):
        yield items[first : first + DISKLESS_PINS_PER_WRITE_MAX]
