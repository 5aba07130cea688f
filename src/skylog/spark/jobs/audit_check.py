"""Pure: the checks of an audit, and the recommended actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from skylog.bulk.verify import batches_in_object
from skylog.client.bulk import BatchLocation, Split
from skylog.diskless.batch import LOG_APPEND_TIME
from skylog.kernel.errors import KafkaError
from skylog.spark.jobs.audit_found import HARMLESS, Finding, Findings, Kind
from skylog.wire.batch import Batch
from skylog.wire.buffers import Buffer


def check_offsets(
    split: Split, position: int, locations: Sequence[BatchLocation], next_offset: int
) -> list[Finding]:
    """Whether batches cover the offsets from ``position`` to ``next_offset``, each once."""
    found = []
    expected = position
    for number, location in enumerate(locations):
        begins = location.base_offset
        # The log may start within its first batch.
        if begins != expected and not (number == 0 and begins < expected <= location.last_offset):
            why = f"offsets {expected} to {begins - 1} are missing"
            if begins < expected:
                why = f"offset {begins} follows {expected - 1}"
            found.append(_finding(Kind.GAP, split, location, why))
        expected = location.last_offset + 1
    if expected < next_offset:
        found.append(
            Finding(
                Kind.GAP,
                f"offsets {expected} to {next_offset - 1} are missing",
                split.topic,
                split.partition,
                expected,
            )
        )
    return found


def check_bytes(split: Split, location: BatchLocation, data: Buffer) -> list[Finding]:
    """Whether the bytes are the batches of the coordinates."""
    try:
        batches = [Batch(one.data) for one in batches_in_object(split, location, data)]
    except KafkaError as error:
        return [_finding(Kind.CORRUPT, split, location, error.message or str(error))]
    found = []
    for batch in batches:
        if batch.record_count != batch.last_offset_delta + 1:
            why = f"{batch.record_count} records for {batch.last_offset_delta + 1} offsets"
            found.append(_finding(Kind.HEADER, split, location, why))
    stamped = location.timestamp_type == LOG_APPEND_TIME
    newest = max(batch.max_timestamp for batch in batches)
    if not stamped and newest != location.max_timestamp:
        why = f"newest record of {newest}, not {location.max_timestamp}"
        found.append(_finding(Kind.HEADER, split, location, why))
    return found


def missing(split: Split, location: BatchLocation, why: str) -> Finding:
    return _finding(Kind.MISSING, split, location, why)


def _finding(kind: Kind, split: Split, location: BatchLocation, detail: str) -> Finding:
    return Finding(
        kind, detail, split.topic, split.partition, location.base_offset, location.object_key
    )


def pack(splits: Iterable[Split], task_bytes: int) -> list[tuple[Split, ...]]:
    """Splits for one task each; none is cut, so that no batch is checked twice."""
    tasks: list[tuple[Split, ...]] = []
    held: list[Split] = []
    size = 0
    for split in splits:
        if held and size + split.bytes > task_bytes:
            tasks.append(tuple(held))
            held, size = [], 0
        held.append(split)
        size += split.bytes
    return [*tasks, tuple(held)] if held else tasks


_ADVICE: Final = {
    Kind.MISSING: "Restore the objects from a copy or an older version of the bucket, under the"
    " same keys, and audit again. Until then consumers of these partitions stop at the offsets"
    " named. If there is no copy the records are lost: move consumers past them"
    " (skylog groups reset-offsets), or delete the records up to there (kafka-delete-records).",
    Kind.CORRUPT: "As for missing objects: the bytes under a key never change, so an intact copy"
    " from anywhere will do.",
    Kind.HEADER: "Find out who wrote these objects: the coordinator checks them at the commit."
    " Readers go by the coordinates; no record is lost.",
    Kind.GAP: "The coordinator's cache may be damaged: stop its broker, remove its SQLite file"
    " (it is rebuilt from __diskless_metadata), start it and audit again. If the gap stays, restore"
    " the metadata from its backup in the bucket (skylog restore).",
    Kind.SIZE: "Restore the objects from a copy, as for missing objects.",
    Kind.SEGMENT: "Restore the segment's objects from a copy, under the same keys. Offsets that are"
    " still in the WAL are read from there; consumers of others stop at them. `skylog tiered"
    " verify` looks at these segments again.",
    Kind.DANGLING: "As for missing objects: the file has live batches, and its object is gone.",
    Kind.UNREFERENCED: "Nothing to do if the next audit does not find them: batches may have been"
    " deleted while this one ran.",
    Kind.ORPHAN: "Nothing to do: the brokers' next scan deletes them. `skylog diskless orphans`"
    " shows those that are kept after a restore; --release releases them.",
}


def repair_plan(findings: Findings) -> list[dict[str, object]]:
    """A step for each kind of finding, damage first, with the objects and offsets concerned."""
    by_kind: dict[Kind, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    return [
        {
            "for": kind.value,
            "damage": kind not in HARMLESS,
            "count": findings.counts[kind],
            "do": _ADVICE[kind],
            "objects": sorted({one.object_key for one in found if one.object_key}),
            "offsets": sorted(
                {(one.topic, one.partition, one.offset) for one in found if one.topic}
            ),
        }
        for kind, found in by_kind.items()
    ]
