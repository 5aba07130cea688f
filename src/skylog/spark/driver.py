"""The driver's requests to the cluster: partitions, offsets, plans."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from skylog.bulk.process import pairs, this_process
from skylog.client.bulk import PartitionRange, Plan, plan_ranges
from skylog.client.cluster import Cluster
from skylog.client.metadata import Metadata, TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST, LATEST, CommittedOffset, commit_offsets, list_offsets
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.spark.errors import ReadError, told
from skylog.spark.options import ReadOptions
from skylog.spark.positions import Offsets
from skylog.spark.ranges import Log, Range

T = TypeVar("T")
CLIENT_ID: Final = "skylog-spark"
_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Driver:
    """Requests to the cluster in ``options``; every failure is one clear sentence."""

    def __init__(self, options: ReadOptions) -> None:
        self._subscription = options.subscription
        self._bootstrap = options.client["bootstrap.servers"]
        self._properties = pairs({"client.id": CLIENT_ID, **options.client})
        self._process = this_process()

    def _run(self, work: Coroutine[Any, Any, T], what: str = "") -> T:
        try:
            return self._process.run(work)
        except KafkaError as error:
            raise told(error, self._bootstrap, what) from None

    async def _cluster(self) -> Cluster:
        return (await self._process.connections(self._properties)).cluster

    # Partitions ---------------------------------------------------------------------------

    def partitions(self, known: Collection[TopicPartition] = ()) -> dict[TopicPartition, str]:
        """The partitions to read, each with the id of its topic.

        A topic that is requested by name must exist, unless it is ``known``: then it existed
        before, and its absence is a data loss, which the caller handles.
        """
        return self._run(self._partitions({key.topic for key in known}))

    async def _partitions(self, known: Collection[str]) -> dict[TopicPartition, str]:
        subscription = self._subscription
        cluster = await self._cluster()
        if subscription.pattern is not None:
            await cluster.refresh(None)
            topics = [
                topic
                for name, topic in cluster.metadata.topics.items()
                if subscription.matches(name) and not topic.internal
            ]
            return _all_of(topics)
        names = subscription.topics or {key.topic for key in subscription.partitions}
        await cluster.refresh(sorted(names))
        topics = [topic for name in names if (topic := self._topic(cluster.metadata, name, known))]
        found = _all_of(topics)
        if not subscription.partitions:
            return found
        wanted = set(subscription.partitions)
        missing = [key for key in wanted - found.keys() if key.topic not in known]
        if missing:
            raise self._no_partition(min(missing))
        return {key: topic_id for key, topic_id in found.items() if key in wanted}

    def _topic(self, metadata: Metadata, name: str, known: Collection[str]) -> TopicInfo | None:
        found = metadata.topics.get(name)
        if found is not None:
            return found
        error = metadata.errors.get(name, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if error.code in _GONE and name in known:
            return None
        raise told(error, self._bootstrap, f"topic {name}")

    def _no_partition(self, partition: TopicPartition) -> ReadError:
        return ReadError(
            f"there is no partition {partition.partition} of topic {partition.topic}, which the"
            f" option assign names (cluster at {self._bootstrap})"
        )

    # Offsets ------------------------------------------------------------------------------

    def logs(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Log]:
        """The offsets of partitions; deleted ones are omitted."""
        earliest = self._offsets(dict.fromkeys(partitions, EARLIEST))
        latest = self._offsets(dict.fromkeys(earliest, LATEST))
        return {key: Log(earliest[key], end) for key, end in latest.items()}

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The end offsets of partitions; deleted ones are omitted."""
        return self._offsets(dict.fromkeys(partitions, LATEST))

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The start offsets of partitions; deleted ones are omitted."""
        return self._offsets(dict.fromkeys(partitions, EARLIEST))

    def at_times(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """The first offsets at or after times, −1 if there is none."""
        return self._offsets(times)

    def _offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        if not times:
            return {}
        found: Offsets = {}
        for key, answer in self._run(self._list_offsets(times)).items():
            if not isinstance(answer, KafkaError):
                found[key] = answer.offset
            elif answer.code not in _GONE:
                raise told(answer, self._bootstrap, f"topic {key.topic}")
        return found

    async def _list_offsets(
        self, times: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Any]:
        return await list_offsets(await self._cluster(), times)

    # Plans and progress -------------------------------------------------------------------

    def plan(self, ranges: Sequence[Range], split_bytes: int, min_timestamp: int | None) -> Plan:
        """The splits of ranges, and what need not be read because it is older."""
        least = -1 if min_timestamp is None else max(min_timestamp, -1)
        wanted = [
            PartitionRange(key.topic, key.partition, start, end, least)
            for key, start, end in ranges
        ]
        return self._run(self._plan(wanted, split_bytes))

    async def _plan(self, wanted: Sequence[PartitionRange], split_bytes: int) -> Plan:
        return await plan_ranges(await self._cluster(), wanted, split_bytes)

    def publish(self, group: str, offsets: Offsets) -> None:
        """Commit offsets like a consumer group without members."""
        committed = {key: CommittedOffset(offset) for key, offset in offsets.items()}
        failed = self._run(self._commit(group, committed), f"group {group}")
        for error in failed.values():
            raise told(error, self._bootstrap, f"group {group}")

    async def _commit(
        self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Mapping[TopicPartition, KafkaError]:
        return await commit_offsets(await self._cluster(), group, offsets)


def _all_of(topics: Collection[TopicInfo]) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic.name, index): str(topic.topic_id)
        for topic in topics
        for index in topic.partitions
    }
