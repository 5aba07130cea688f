"""An image that is replaced by a snapshot says what changed, and is the same as one that grew."""

from __future__ import annotations

from skylog.controller.image import ClusterImage, Delta
from skylog.kernel.ids import Uuid
from skylog.wire.messages.access_control_entry_record import AccessControlEntryRecord
from skylog.wire.messages.client_quota_record import ClientQuotaRecord, EntityData
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.remove_topic_record import RemoveTopicRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from skylog.wire.schema import Message

A, B, ACL = (Uuid(bytes([n]) * 16) for n in (1, 2, 3))


def partition(topic_id: Uuid, index: int = 0) -> PartitionRecord:
    return PartitionRecord(index, topic_id, [1], [1], leader=1, directories=[Uuid(bytes([9]) * 16)])


def grown(*records: Message) -> ClusterImage:
    image = ClusterImage()
    for record in records:
        image.apply(record)
    return image


BEFORE = (
    FeatureLevelRecord("metadata.version", 20),
    RegisterBrokerRecord(1, broker_epoch=5, log_dirs=[Uuid(bytes([9]) * 16)]),
    RegisterBrokerRecord(2, broker_epoch=6, log_dirs=[Uuid(bytes([8]) * 16)]),
    TopicRecord("a", A),
    partition(A),
    partition(A, 1),
    ConfigRecord(2, "a", "retention.ms", "1"),
    AccessControlEntryRecord(ACL, 2, "a", 3, "User:x", "*", 3, 3),
)
CHANGES = (
    FeatureLevelRecord("metadata.version", 21),
    UnregisterBrokerRecord(2, 6),
    PartitionChangeRecord(1, A, leader=-1, isr=[1]),
    TopicRecord("b", B),
    partition(B),
    ConfigRecord(2, "a", "retention.ms", "2"),
    ClientQuotaRecord([EntityData("user", "x")], "producer_byte_rate", 5.0),
)


def test_a_replaced_image_is_the_one_that_grew() -> None:
    image, after = grown(*BEFORE), grown(*BEFORE, *CHANGES)
    held = image
    delta = image.replace(list(after.snapshot()))
    assert list(held.snapshot()) == list(after.snapshot())
    assert set(delta.topics_created) == {B}
    assert delta.topics_deleted == {}
    assert delta.partitions == {A: {1}, B: {0}}
    assert delta.brokers == {2}
    assert delta.features == {"metadata.version"}
    assert [resource.name for resource in delta.configs] == ["a"]
    assert delta.quotas == {(("user", "x"),)}
    assert not delta.acls_added and not delta.acls_removed


def test_what_a_snapshot_no_longer_has_is_gone() -> None:
    image = grown(*BEFORE)
    delta = image.replace([BEFORE[0]])
    assert set(delta.topics_deleted) == {A}
    assert delta.partitions == {}
    assert delta.brokers == {1, 2}
    assert set(delta.acls_removed) == {ACL}
    assert image.topic("a") is None
    assert not list(image.acl_bindings())


def test_the_same_snapshot_changes_nothing() -> None:
    image = grown(*BEFORE, *CHANGES)
    assert not image.replace(list(image.snapshot()))


def test_a_replaced_image_goes_on_growing() -> None:
    image = grown(*BEFORE)
    image.replace(list(grown(*BEFORE, *CHANGES).snapshot()))
    names = image.topic_names()
    delta = image.apply(RemoveTopicRecord(A), Delta())
    assert set(delta.topics_deleted) == {A}
    assert names == ["a", "b"]
    assert image.topic_names() == ["b"]
