from __future__ import annotations

import pytest

from skylog.controller.image import ClusterImage, Delta
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.image.topics import PartitionKind
from skylog.kernel.ids import Uuid
from skylog.wire.messages.abort_transaction_record import AbortTransactionRecord
from skylog.wire.messages.begin_transaction_record import BeginTransactionRecord
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.delegation_token_record import DelegationTokenRecord
from skylog.wire.messages.end_transaction_record import EndTransactionRecord
from skylog.wire.messages.fence_broker_record import FenceBrokerRecord
from skylog.wire.messages.no_op_record import NoOpRecord
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from skylog.wire.messages.remove_topic_record import RemoveTopicRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from skylog.wire.messages.user_scram_credential_record import UserScramCredentialRecord

ID = Uuid(b"t" * 16)


def image_with_topic() -> ClusterImage:
    image = ClusterImage()
    image.apply(TopicRecord("t", ID))
    image.apply(PartitionRecord(0, ID, [1], [1], leader=1, leader_epoch=0, partition_epoch=0))
    return image


def test_lookups_by_name_and_by_id() -> None:
    image = image_with_topic()
    assert image.topic_name(ID) == "t"
    assert image.topic_id("t") == ID
    assert image.topic("t") is image.topic_by_id(ID)
    assert image.partition("t", 0) is not None
    assert (image.topic_name(Uuid(b"u" * 16)), image.topic("u"), image.topic_id("u")) == (
        None,
        None,
        None,
    )
    assert image.partition("t", 1) is image.partition("u", 0) is None


def test_the_kind_of_a_partition_follows_from_its_record() -> None:
    image = ClusterImage()
    kinds = {}
    for name, coordinator in (("classic", -1), ("pure", 0)):
        topic_id = Uuid(name[:1].encode() * 16)
        image.apply(TopicRecord(name, topic_id))
        assert not image.topics.by_name[name].diskless_enabled  # it has no partition yet
        image.apply(
            PartitionRecord(0, topic_id, [1], [1], leader=1, diskless_coordinator_id=coordinator)
        )
        image.apply(PartitionChangeRecord(0, topic_id, leader=2))
        found = image.partition(name, 0)
        assert found is not None
        kinds[found.kind] = (found.has_log, found.writes_diskless, found.is_pure)
        assert image.topics.by_name[name].diskless_enabled == found.writes_diskless
    assert kinds == {
        PartitionKind.CLASSIC: (True, False, False),
        PartitionKind.PURE: (False, True, True),
    }


def test_names_are_sorted_again_after_each_change() -> None:
    image = ClusterImage()
    for name in ("b", "a"):
        image.apply(TopicRecord(name, Uuid(name.encode() * 16)))
        assert image.topic_names() == sorted(image.topics.by_name)
    image.apply(RemoveTopicRecord(Uuid(b"a" * 16)))
    assert image.topic_names() == ["b"]


def test_a_delta_names_what_changed() -> None:
    image = image_with_topic()
    delta = Delta()
    assert not delta
    image.apply(PartitionChangeRecord(0, ID, leader=-1), delta)
    image.apply(ConfigRecord(ConfigResourceType.TOPIC, "t", "a", "b"), delta)
    assert delta.partitions == {ID: {0}}
    assert delta.configs == {ConfigResource(2, "t")}
    assert not delta.topics_created
    image.apply(RemoveTopicRecord(ID), delta)
    assert list(delta.topics_deleted) == [ID]
    assert delta.partitions == {}
    assert delta


def test_a_topic_that_came_and_went_is_in_no_delta() -> None:
    image, delta = ClusterImage(), Delta()
    image.apply(TopicRecord("t", ID), delta)
    assert list(delta.topics_created) == [ID]
    image.apply(RemoveTopicRecord(ID), delta)
    assert not delta.topics_created
    assert not delta.topics_deleted


def test_a_partition_is_replaced_not_changed() -> None:
    image = image_with_topic()
    before = image.partition("t", 0)
    image.apply(PartitionChangeRecord(0, ID, leader=-1))
    after = image.partition("t", 0)
    assert before is not None
    assert after is not None
    assert (before.leader, before.leader_epoch, before.partition_epoch) == (1, 0, 0)
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (-1, 1, 1)
    assert list(image.topics.leaderless) == [(ID, 0)]


def test_a_transaction_counts_when_it_ends() -> None:
    image = ClusterImage()
    image.apply(BeginTransactionRecord("x"))
    assert not image.apply(TopicRecord("t", ID))
    assert image.topic("t") is None
    delta = image.apply(EndTransactionRecord())
    assert list(delta.topics_created) == [ID]
    assert image.topic("t") is not None
    image.apply(BeginTransactionRecord("y"))
    image.apply(RemoveTopicRecord(ID))
    image.apply(AbortTransactionRecord("gone"))
    assert image.topic("t") is not None


def test_old_kinds_of_records_are_understood_and_idle_ones_passed_over() -> None:
    image = ClusterImage()
    image.apply(RegisterBrokerRecord(1, broker_epoch=5))
    image.apply(UnfenceBrokerRecord(1, 5))
    assert image.is_alive(1)
    image.apply(FenceBrokerRecord(1, 5))
    assert not image.is_alive(1)
    assert not image.apply(NoOpRecord())


def test_tokens_of_kafka_are_kept() -> None:
    image = ClusterImage()
    token = DelegationTokenRecord(owner="User:a", token_id="one")
    image.apply(token)
    assert list(image.snapshot()) == [token]
    image.apply(RemoveDelegationTokenRecord("one"))
    assert list(image.snapshot()) == []


def test_secrets_are_not_printed() -> None:
    image = ClusterImage()
    image.apply(UserScramCredentialRecord("a", 1, b"salt", b"stored", b"server", 4096))
    assert "stored" not in repr(image.scram_credential("a", 1))


@pytest.mark.parametrize(
    "record",
    [
        PartitionRecord(0, Uuid(b"u" * 16)),
        PartitionChangeRecord(7, ID),
        RemoveTopicRecord(Uuid(b"u" * 16)),
        TopicRecord("t", Uuid(b"u" * 16)),
        UnfenceBrokerRecord(9, 0),
    ],
)
def test_a_record_that_cannot_follow_stops_everything(
    record: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
    with pytest.raises(AssertionError):
        image_with_topic().apply(record)  # type: ignore[arg-type]
