"""The admin clients of all libraries: topics, configs, records, groups, quotas, SCRAM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.clients import Client, ClientError, Record, await_that

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NOW = 1_750_000_000_000
Get = Callable[[str], Client]
NewTopic = Callable[..., str]
NewName = Callable[[str], str]


@pytest.mark.parametrize("library", ["java", "franz-go", "kafkajs"])
def test_the_life_of_a_topic(library: str, client: Get, name: NewName) -> None:
    admin: Any = client(library)
    topic = name("topic")
    made = admin("create", topic=topic, partitions=2, configs={"retention.ms": "123456"})
    assert made["partitions"] == 2
    with pytest.raises(ClientError, match=r"(?i)exists"):
        admin("create", topic=topic, partitions=2)
    with pytest.raises(ClientError, match=r"(?i)partitions|creation errors"):
        admin("create", topic=name("bad"), partitions=0)
    with pytest.raises(ClientError, match=r"(?i)config|creation errors"):
        admin("create", topic=name("bad"), partitions=1, configs={"retention.ms": "x"})
    admin("grow", topic=topic, partitions=4)
    with pytest.raises(ClientError, match=r"(?i)partition"):
        admin("grow", topic=topic, partitions=3)
    admin("alter", topic=topic, configs={"segment.ms": "77777"})
    client("librdkafka").produce(topic, [Record(0, NOW, b"k", b"v") for _ in range(10)])
    seen = admin("describe", topic=topic)
    assert seen["partitions"] == 4
    assert seen["configs"]["segment.ms"] == "77777"
    # kafkajs replaces all settings, as AlterConfigs does; the others change one.
    kept = "604800000" if library == "kafkajs" else "123456"
    assert seen["configs"]["retention.ms"] == kept
    assert seen["ends"] == {"0": 10, "1": 0, "2": 0, "3": 0}
    assert admin("trim", topic=topic, count=4) == 4
    assert len(client("librdkafka").consume(topic, 6)) == 6
    admin("delete", topic=topic)
    with pytest.raises(ClientError, match=r"(?i)unknown|exist|host"):
        admin("describe", topic=topic)


@pytest.mark.parametrize("library", ["java", "franz-go", "kafkajs"])
def test_groups_are_seen_and_forgotten(
    library: str, client: Get, topic: NewTopic, name: NewName
) -> None:
    admin: Any = client(library)
    subject, group = topic(2), name("group")
    client("librdkafka").produce(subject, [Record(i % 2, NOW, b"k", b"v") for i in range(10)])
    assignor = {"java": "org.apache.kafka.clients.consumer.RangeAssignor"}.get(library, "range")
    member = client(library).join(subject, group, assignor=assignor)
    seen: list[Record] = []
    await_that(lambda: seen.extend(member.look()[1]) or len(seen) == 10, "ten records")
    member.commit()
    live = admin("group", group=group)
    assert (live["state"], live["members"]) == ("Stable", 1)
    assert live["offsets"] == {f"{subject}-0": 5, f"{subject}-1": 5}
    with pytest.raises(ClientError, match=r"(?i)not empty|NON_EMPTY|delete"):
        admin("forget", group=group)
    member.leave()
    assert admin("group", group=group)["state"] == "Empty"
    admin("forget", group=group)


def test_librdkafka_admin(bootstrap: str, client: Get, name: NewName, topic: NewTopic) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewPartitions,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    subject, group = name("topic"), name("group")
    new = NewTopic(subject, 2, 1, config={"cleanup.policy": "compact,delete"})
    admin.create_topics([new])[subject].result()
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([new])[subject].result()
    admin.create_topics([NewTopic(name("only"), 1, 1)], validate_only=True)
    admin.create_partitions([NewPartitions(subject, 3)])[subject].result()
    assert len(admin.list_topics(subject).topics[subject].partitions) == 3
    from confluent_kafka import TopicCollection

    described = admin.describe_topics(
        TopicCollection([subject]), include_authorized_operations=True
    )
    assert len(described[subject].result().partitions) == 3
    change = ConfigEntry("retention.ms", "9999", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, subject, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result()
    configs = admin.describe_configs([ConfigResource(ResourceType.TOPIC, subject)])
    found = next(iter(configs.values())).result()
    assert found["retention.ms"].value == "9999"
    assert found["cleanup.policy"].value == "compact,delete"
    client("librdkafka").produce(subject, [Record(0, NOW + i, b"k", b"v") for i in range(10)])
    first = TopicPartition(subject, 0)
    for spec, offset in [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 10),
        (OffsetSpec.max_timestamp(), 9),
        (OffsetSpec.for_timestamp(NOW + 4), 4),
    ]:
        assert admin.list_offsets({first: spec})[first].result().offset == offset
    gone = admin.delete_records([TopicPartition(subject, 0, 3)])
    assert next(iter(gone.values())).result().low_watermark == 3
    offsets = ConsumerGroupTopicPartitions(group, [TopicPartition(subject, 0, 7)])
    admin.alter_consumer_group_offsets([offsets])[group].result()
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[
        group
    ].result()
    assert [(p.partition, p.offset) for p in listed.topic_partitions] == [(0, 7)]
    assert group in {g.group_id for g in admin.list_consumer_groups().result().valid}
    assert admin.describe_consumer_groups([group])[group].result().state.name == "EMPTY"
    admin.delete_consumer_groups([group])[group].result()
    cluster = admin.describe_cluster(include_authorized_operations=True).result()
    assert [node.id for node in cluster.nodes] == [1]
    admin.delete_topics([subject])[subject].result()
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        admin.delete_topics([subject])[subject].result()


def test_librdkafka_scram(bootstrap: str, name: NewName) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )

    admin, user = AdminClient({"bootstrap.servers": bootstrap}), name("user")
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    put = UserScramCredentialUpsertion(user, info, b"secret")
    admin.alter_user_scram_credentials([put])[user].result()
    found = admin.describe_user_scram_credentials([user])[user].result()
    assert [(i.mechanism, i.iterations) for i in found.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 8192)
    ]
    gone = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([gone])[user].result()
    with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
        admin.describe_user_scram_credentials([user])[user].result()


def test_kafka_python_admin(bootstrap: str, client: Get, name: NewName) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
    from kafka.errors import TopicAlreadyExistsError

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    subject = name("topic")
    admin.create_topics([NewTopic(subject, 2, 1, topic_configs={"retention.ms": "4321"})])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(subject, 2, 1)])
    admin.create_partitions({subject: NewPartitions(3)})
    assert subject in admin.list_topics()
    assert len(admin.describe_topics([subject])[0]["partitions"]) == 3
    resource = ConfigResource(ConfigResourceType.TOPIC, subject)
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, subject, {"segment.ms": "88888"})]
    )
    assert "88888" in str(admin.describe_configs([resource]))
    assert admin.describe_cluster()["controller_id"] == 1
    client("kafka-python").produce(subject, [Record(0, NOW, b"k", b"v")])
    admin.delete_topics([subject])
    assert subject not in admin.list_topics()
    admin.close()


async def test_aiokafka_admin(bootstrap: str, name: NewName) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        subject = name("topic")
        answer = await admin.create_topics([NewTopic(subject, 2, 1)])
        assert [code for _, code, *_ in answer.topic_errors] == [0]
        answer = await admin.create_topics([NewTopic(subject, 2, 1)])
        assert [code for _, code, *_ in answer.topic_errors] == [36]
        await admin.create_partitions({subject: NewPartitions(3)})
        assert subject in await admin.list_topics()
        described = await admin.describe_topics([subject])
        assert len(described[0]["partitions"]) == 3
        await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, subject)])
        await admin.list_consumer_groups()
        await admin.delete_topics([subject])
        assert subject not in await admin.list_topics()
    finally:
        await admin.close()
