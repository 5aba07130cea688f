"""Topics that are created on demand, including internal ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.kernel.topics import CONSUMER_OFFSETS, DISKLESS_METADATA, TRANSACTION_STATE
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

if TYPE_CHECKING:
    from skylog.broker.metadata.controller_channel import ControllerChannel
    from skylog.kernel.settings import BrokerSettings

log = get_logger("broker.auto_create")
CREATE_TIMEOUT_MS = 15_000
CREATE_VERSION = 7
DISKLESS = ("diskless.enable", "true")


class AutoCreate:
    """Creates topics with the cluster's defaults; concurrent requests for one share its
    creation."""

    def __init__(
        self,
        settings: BrokerSettings,
        controller: ControllerChannel,
        is_whole_cluster: Callable[[], bool],
    ) -> None:
        """``is_whole_cluster``: this node is the only voter and the only broker registered."""
        self._settings = settings
        self._controller = controller
        self._is_whole_cluster = is_whole_cluster
        self._under_way: dict[str, asyncio.Task[ErrorCode]] = {}

    async def create(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create missing topics; returns the result of each."""
        tasks = {name: self._task(name) for name in names}
        # A caller that is cancelled must not cancel work that others wait for.
        outcomes = await asyncio.gather(*(asyncio.shield(task) for task in tasks.values()))
        return dict(zip(tasks, outcomes, strict=True))

    async def create_diskless(self, name: str) -> None:
        """Create one diskless topic; an existing one is left unchanged."""
        topic = CreatableTopic(name, -1, -1, configs=[CreatableTopicConfig(*DISKLESS)])
        request = CreateTopicsRequest(topics=[topic], timeout_ms=CREATE_TIMEOUT_MS)
        await self._controller.submit(request, CREATE_VERSION)

    def _task(self, name: str) -> asyncio.Task[ErrorCode]:
        task = self._under_way.get(name)
        if task is None:
            task = asyncio.ensure_future(self._create(name))
            self._under_way[name] = task
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        return task

    async def _create(self, name: str) -> ErrorCode:
        request = CreateTopicsRequest(topics=[self._topic(name)], timeout_ms=CREATE_TIMEOUT_MS)
        try:
            response = await self._controller.submit(request, CREATE_VERSION)
        except KafkaError as error:
            return error.code
        result = response.topics[0]
        code = ErrorCode(result.error_code)
        if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            log.warning("topic not created", topic=name, error=code.name, why=result.error_message)
            return code
        return ErrorCode.NONE

    def _topic(self, name: str) -> CreatableTopic:
        if name == DISKLESS_METADATA:
            return self._diskless_metadata()
        if name == TRANSACTION_STATE:
            return self._transaction_state()
        if name == METADATA_TOPIC:
            return self._remote_log_metadata()
        if name != CONSUMER_OFFSETS:
            return CreatableTopic(name, -1, -1)
        groups = self._settings.groups
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(groups.offsets_topic_segment_bytes),
        }
        return CreatableTopic(
            name,
            groups.offsets_topic_partitions,
            self._replicas("offsets.topic.replication.factor"),
            configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
        )

    def _transaction_state(self) -> CreatableTopic:
        transactions = self._settings.transactions
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(self._replicas("transaction.state.log.min.isr")),
            "segment.bytes": str(transactions.topic_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return CreatableTopic(
            TRANSACTION_STATE,
            transactions.topic_partitions,
            self._replicas("transaction.state.log.replication.factor"),
            configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
        )

    def _diskless_metadata(self) -> CreatableTopic:
        """The coordinators' log: kept until a snapshot covers it, with unclean elections
        disabled."""
        diskless = self._settings.diskless
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "min.insync.replicas": str(self._replicas("diskless.metadata.topic.min.isr")),
            "unclean.leader.election.enable": "false",
            "compression.type": "producer",
        }
        return CreatableTopic(
            DISKLESS_METADATA,
            diskless.metadata_partitions,
            self._replicas("diskless.metadata.topic.replication.factor"),
            configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
        )

    def _remote_log_metadata(self) -> CreatableTopic:
        """Kafka's settings. Never compacted, and never tiered itself."""
        tiered = self._settings.tiered
        topic, prefix = tiered.metadata_topic, f"{tiered.metadata_prefix}remote.log.metadata.topic."
        isr_min = self._given(f"{prefix}min.isr", topic.isr_min)
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": str(topic.retention_ms),
            "retention.bytes": "-1",
            "min.insync.replicas": str(isr_min),
            "remote.storage.enable": "false",
            "unclean.leader.election.enable": "false",
        }
        return CreatableTopic(
            METADATA_TOPIC,
            topic.partitions,
            self._given(f"{prefix}replication.factor", topic.replication_factor),
            configs=[CreatableTopicConfig(key, value) for key, value in configs.items()],
        )

    def _replicas(self, setting: str) -> int:
        return self._given(setting, int(self._settings[setting]))

    def _given(self, setting: str, wanted: int) -> int:
        """The configured replication factor of an internal topic.

        Kafka's defaults are for three brokers. If they were not set explicitly, and this is a
        single node, a topic with one replica is better than none.
        """
        if wanted == 1 or setting in self._settings.static or not self._is_whole_cluster():
            return wanted
        log.warning("using 1: this node is the whole cluster", setting=setting, default=wanted)
        return 1
