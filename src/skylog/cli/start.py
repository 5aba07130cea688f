"""Where reading starts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import typer

from skylog.cli.connect import offsets_at
from skylog.cli.times import parse_time
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST
from skylog.kernel.clock import SystemClock

_NAMED: Final = {"earliest": EARLIEST, "latest": LATEST}
_NUMBER: Final = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, slots=True)
class Start:
    """One of: a time or EARLIEST or LATEST, an offset, or a number of records before the end."""

    time: int | None = None
    offset: int | None = None
    last: int | None = None


def parse_start(text: str | None, *, from_beginning: bool, group: str | None) -> Start | None:
    """From --from and --from-beginning; None for a group, which has its own offsets."""
    if from_beginning and text is not None:
        raise typer.BadParameter("give either --from or --from-beginning")
    if group is not None:
        if text is not None:
            raise typer.BadParameter(
                "a group continues at its committed offsets; `skylog groups reset-offsets` moves "
                "it",
                param_hint="--from",
            )
        return None
    if text is None:
        return Start(time=EARLIEST if from_beginning else LATEST)
    if text in _NAMED:
        return Start(time=_NAMED[text])
    if _NUMBER.fullmatch(text):
        number = int(text)
        return Start(last=-number) if text.startswith("-") else Start(offset=number)
    try:
        return Start(time=parse_time(text, SystemClock().now_ms()))
    except ValueError as error:
        raise typer.BadParameter(
            f"{error}; or earliest, latest, an offset, -N for the last N", param_hint="--from"
        ) from None


async def starting_offsets(
    cluster: Cluster, keys: list[TopicPartition], start: Start
) -> dict[TopicPartition, int]:
    """The first offset to read in each partition."""
    if start.offset is not None:
        return dict.fromkeys(keys, start.offset)
    if start.last is not None:
        first = await offsets_at(cluster, keys, EARLIEST)
        end = await offsets_at(cluster, keys, LATEST)
        return {key: max(first[key], end[key] - start.last) for key in keys}
    found = await offsets_at(cluster, keys, LATEST if start.time is None else start.time)
    if all(offset >= 0 for offset in found.values()):
        return found
    end = await offsets_at(cluster, keys, LATEST)  # no record is that recent: start at the end
    return {key: offset if offset >= 0 else end[key] for key, offset in found.items()}
