"""Compares the logs of replicas byte by byte, after all writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

_METADATA_LOG = "__cluster_metadata-0"


def _whole(partition: Path) -> tuple[int, bytes]:
    segments = sorted(partition.glob("*.log"))
    return int(segments[0].stem), b"".join(segment.read_bytes() for segment in segments)


def compare(directories: Iterable[Path], tiered: Collection[str] = ()) -> tuple[list[str], int]:
    """The differences, and how many bytes are the same on all; internal topics and others.

    Internal topics may have grown while nodes stopped one after the other: only their common prefix
    must be the same. Of ``tiered`` topics each replica has dropped the records that it liked: only
    their common end must be the same.
    """
    copies: dict[str, dict[str, bytes]] = defaultdict(dict)
    starts: dict[str, set[int]] = defaultdict(set)
    for directory in directories:
        for partition in directory.iterdir():
            if partition.name != _METADATA_LOG and any(partition.glob("*.log")):
                start, copies[partition.name][directory.name] = _whole(partition)
                starts[partition.name].add(start)
    complaints, same = [], 0
    for name, logs in sorted(copies.items()):
        lengths = {where: len(log) for where, log in logs.items()}
        common = min(lengths.values())
        if name.rpartition("-")[0] in tiered:
            ends = {log[len(log) - common :] for log in logs.values()}
            same += common
            if len(ends) > 1:
                complaints.append(f"V2 {name}: replicas end differently, lengths {lengths}")
        elif len(starts[name]) > 1:
            complaints.append(f"V2 {name}: logs begin at {sorted(starts[name])}")
        elif len({log[:common] for log in logs.values()}) > 1:
            complaints.append(f"V2 {name}: replicas differ, lengths {lengths}")
        elif not name.startswith("__") and len(set(lengths.values())) > 1:
            complaints.append(f"V1 {name}: replicas end apart, lengths {lengths}")
        else:
            same += common
    return complaints, same
