"""Bulk reading and writing over skylog's own APIs (500 to 503)."""

from __future__ import annotations

from skylog.client.bulk.reading import locate_batches, locate_many, plan_ranges
from skylog.client.bulk.types import (
    BatchLocation,
    CommitStagedResult,
    CommittedBatch,
    Located,
    PartitionPlan,
    PartitionRange,
    PinResult,
    Plan,
    Region,
    Regions,
    Split,
    StagedBatch,
    StagedObject,
    StagingInfo,
)
from skylog.client.bulk.writing import commit_staged, pin_staged, staging_info

__all__ = [
    "BatchLocation",
    "CommitStagedResult",
    "CommittedBatch",
    "Located",
    "PartitionPlan",
    "PartitionRange",
    "PinResult",
    "Plan",
    "Region",
    "Regions",
    "Split",
    "StagedBatch",
    "StagedObject",
    "StagingInfo",
    "commit_staged",
    "locate_batches",
    "locate_many",
    "pin_staged",
    "plan_ranges",
    "staging_info",
]
