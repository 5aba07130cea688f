"""What a writer must know about topics: requested once per topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from skylog.bulk.encode import TopicTarget
from skylog.client.admin.configs import ConfigAdmin, ConfigResource, ConfigType
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo
from skylog.kernel.acl import AclOperation
from skylog.kernel.config import is_true
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import Compression
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from skylog.wire.messages.metadata_response import MetadataResponse

_KEYS: Final = (
    "cleanup.policy",
    "compression.type",
    "diskless.enable",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
)
_CODECS: Final = {codec.name.lower(): codec for codec in Compression} | {
    "uncompressed": Compression.NONE
}
_ANY_MS: Final = 2**63 - 1
# A new topic may not be known on every broker yet.
_UNKNOWN_TOPIC_MS: Final = 3_000
_OPERATIONS_NOT_TOLD: Final = -(2**31)


async def fetch_targets(cluster: Cluster, names: Collection[str]) -> dict[str, TopicTarget]:
    """All topics; KafkaError names the first that does not exist, or that the client may not
    write to or describe."""
    infos = {name: await _topic(cluster, name) for name in names}
    if infos:
        await _check_rights(cluster, names)
    resources = [ConfigResource(ConfigType.TOPIC, name) for name in names]
    found = await ConfigAdmin(cluster).describe(resources, _KEYS)
    targets = {}
    for resource in resources:
        entries = found.get(resource, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no response"))
        if isinstance(entries, KafkaError):
            raise KafkaError(
                entries.code, f"DescribeConfigs of topic {resource.name}: {entries.message}"
            )
        values = {entry.name: entry.value or "" for entry in entries}
        targets[resource.name] = target_of(infos[resource.name], values)
    return targets


async def _topic(cluster: Cluster, name: str) -> TopicInfo:
    # The client may live long: a topic of that name may be another one by now.
    cluster.metadata.forget(name)
    try:
        return await cluster.retry(lambda: cluster.topic(name), timeout_ms=_UNKNOWN_TOPIC_MS)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise KafkaError(error.code, f"topic {name} does not exist") from None


async def _check_rights(cluster: Cluster, names: Collection[str]) -> None:
    """Checked before anything is staged: brokers would refuse it only at the commit."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )

    async def ask() -> MetadataResponse:
        answer: MetadataResponse = await (await cluster.any_node()).request(request)
        return answer

    for topic in (await cluster.retry(ask)).topics:
        operations = topic.topic_authorized_operations
        told = not topic.error_code and operations != _OPERATIONS_NOT_TOLD
        if told and not operations >> AclOperation.WRITE & 1:
            raise KafkaError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to write to topic {topic.name}"
            )


def target_of(info: TopicInfo, values: Mapping[str, str]) -> TopicTarget:
    """A topic by its configuration; a setting that its brokers do not know has Kafka's default."""
    # With LogAppendTime, the timestamps of records are replaced and their range does not matter.
    bounded = values.get("message.timestamp.type") != "LogAppendTime"
    return TopicTarget(
        name=info.name,
        partitions=len(info.partitions),
        topic_id=info.topic_id,
        diskless=is_true(values.get("diskless.enable")),
        message_bytes_max=int(values.get("max.message.bytes") or 1_048_588),
        keyed="compact" in values.get("cleanup.policy", ""),
        before_ms_max=_ms(values, "message.timestamp.before.max.ms") if bounded else _ANY_MS,
        after_ms_max=_ms(values, "message.timestamp.after.max.ms") if bounded else _ANY_MS,
        codec=_CODECS.get(values.get("compression.type", "producer")),
    )


def _ms(values: Mapping[str, str], name: str) -> int:
    return int(values.get(name) or _ANY_MS)
