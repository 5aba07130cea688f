"""Generated from DisklessFindBatchesRequest.json; do not edit."""

from __future__ import annotations

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.schema import LAST, UNSET, Field, Message, Struct, Versions


class DisklessFindBatchesPartition(Struct):
    __slots__ = ("partition_index", "offset", "max_partition_fetch_bytes",)
    FIELDS = (
        Field("partition_index", "int32", Versions(0, LAST), 0),
        Field("offset", "int64", Versions(0, LAST), 0),
        Field("max_partition_fetch_bytes", "int32", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
        max_partition_fetch_bytes: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset
        self.max_partition_fetch_bytes = max_partition_fetch_bytes


class DisklessFindBatchesTopic(Struct):
    __slots__ = ("topic_id", "partitions",)
    FIELDS = (
        Field("topic_id", "uuid", Versions(0, LAST), ZERO_UUID),
        Field("partitions", DisklessFindBatchesPartition, Versions(0, LAST), (), array=True),
    )

    def __init__(
        self,
        topic_id: Uuid = ZERO_UUID,
        partitions: list[DisklessFindBatchesPartition] = UNSET,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is UNSET else partitions


class DisklessFindBatchesRequest(Message):
    __slots__ = ("fetch_max_bytes", "max_batches_per_partition", "topics", "wait_ms", "coordinator_id", "since", "allow_follower", "timeout_ms",)
    TYPE = "request"
    API_KEY = 98
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    LISTENERS = ('broker',)
    FIELDS = (
        Field("fetch_max_bytes", "int32", Versions(0, LAST), 0),
        Field("max_batches_per_partition", "int32", Versions(0, LAST), 0),
        Field("topics", DisklessFindBatchesTopic, Versions(0, LAST), (), array=True),
        Field("wait_ms", "int32", Versions(0, LAST), 0, tag=10000, tagged=Versions(0, LAST), ignorable=True),
        Field("coordinator_id", "int32", Versions(0, LAST), -1, tag=10001, tagged=Versions(0, LAST), ignorable=True),
        Field("since", "int64", Versions(0, LAST), -1, tag=10002, tagged=Versions(0, LAST), ignorable=True),
        Field("allow_follower", "bool", Versions(0, LAST), False, tag=10003, tagged=Versions(0, LAST), ignorable=True),
        Field("timeout_ms", "int32", Versions(0, LAST), 60000),
    )

    def __init__(
        self,
        fetch_max_bytes: int = 0,
        max_batches_per_partition: int = 0,
        topics: list[DisklessFindBatchesTopic] = UNSET,
        wait_ms: int = 0,
        coordinator_id: int = -1,
        since: int = -1,
        allow_follower: bool = False,
        timeout_ms: int = 60000,
    ) -> None:
        self.fetch_max_bytes = fetch_max_bytes
        self.max_batches_per_partition = max_batches_per_partition
        self.topics = [] if topics is UNSET else topics
        self.wait_ms = wait_ms
        self.coordinator_id = coordinator_id
        self.since = since
        self.allow_follower = allow_follower
        self.timeout_ms = timeout_ms

