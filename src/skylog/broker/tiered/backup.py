"""The remote logs that a broker follows, as parts of its backup.

Each broker backs up those of the partitions it hosts, by partition of the metadata topic. A restore
takes, of all brokers' backups, the newest of each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from skylog.diskless.files.backup import StateToBackup
from skylog.diskless.files.restore import REPLICA
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.tiered.metadata.partitioner import metadata_partition
from skylog.tiered.metadata.snapshots import RemoteLogState, encode_snapshot

if TYPE_CHECKING:
    from skylog.broker.services import Services
    from skylog.tiered.metadata.machine import RemoteLog

# A node that has no replica of the partition of the metadata topic, but reads it.
READER: Final = "reader"


def remote_log_states(services: Services) -> list[StateToBackup]:
    """One for each partition of the metadata topic that this broker hosts or reads."""
    tiered, topic = services.tiered, services.image.topic(METADATA_TOPIC)
    if tiered is None or topic is None:
        return []
    found: dict[int, list[RemoteLog]] = {}
    for log in tiered.logs:
        found.setdefault(metadata_partition(log.partition, len(topic.partitions)), []).append(log)
    states = []
    for number in sorted(topic.partitions):
        hosted = services.replicas.get(METADATA_TOPIC, number) is not None
        if hosted or number in found:
            logs = sorted(found.get(number, ()), key=lambda one: one.partition)
            offset = max((log.next_offset for log in logs), default=0)
            states.append(
                StateToBackup(
                    METADATA_TOPIC,
                    number,
                    topic.topic_id,
                    offset,
                    REPLICA if hosted else READER,
                    partial(
                        encode_snapshot,
                        topic.topic_id,
                        number,
                        offset,
                        [RemoteLogState(*log.snapshot()) for log in logs],
                    ),
                )
            )
    return states
