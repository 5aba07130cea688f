"""``skylog.read`` from a bucket over HTTP, with separate credentials and with failures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skylog.bulk.process import close_process
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError, StorageError
from skylog.testing import Broker
from tests.consolidating import SETTINGS as SETTINGS_OF_TIERS
from tests.contract.bucket_server import (
    RESET_BEFORE,
    TRUNCATED,
    Answer,
    BucketServer,
    bucket_server,
    s3_settings,
)
from tests.integration.auth_world import ALICE, PASSWORDS, SETTINGS, World
from tests.integration.bulk_tiers import TOPIC, tier_and_prune
from tests.integration.frames_support import consumed, create, produce, read, rows_of

SLOW_DOWN = Answer(503, b"<Error><Code>SlowDown</Code></Error>")
DENIED = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")


@pytest.fixture
def server() -> Iterator[BucketServer]:
    with bucket_server() as running:
        yield running
        close_process()


@pytest.fixture
def broker(server: BucketServer) -> Iterator[Broker]:
    with Broker(s3_settings(server.endpoint)) as running:
        yield running


def own_settings(server: BucketServer, **more: str) -> dict[str, str]:
    """A reader's credentials: the broker returns the bucket's location, but no credentials."""
    settings = {
        **s3_settings(server.endpoint),
        "diskless.storage.s3.access.key.id": "reader",
        "diskless.storage.retry.backoff.ms": "1",
        **more,
    }
    del settings["diskless.storage.url"]
    return settings


def test_rows_are_read_with_the_readers_credentials(server: BucketServer, broker: Broker) -> None:
    topic = create(broker, "far", **{"diskless.enable": "true"})
    produce(broker, topic, 300, **{"compression.type": "zstd"})
    expected = consumed(broker, topic)
    before = len(server.requests)
    server.keys_seen.clear()
    assert rows_of(read(broker, topic, storage=own_settings(server)).to_arrow()) == expected
    gets = [request for request in server.requests[before:] if request.startswith("GET wal/")]
    assert "reader" in server.keys_seen
    # One request for each object, however many batches it holds.
    assert len(gets) == len(set(gets))


def test_transient_failures_are_retried(server: BucketServer, broker: Broker) -> None:
    topic = create(broker, "shaky", **{"diskless.enable": "true"})
    produce(broker, topic, 100)
    expected = consumed(broker, topic)
    planned = read(broker, topic, storage=own_settings(server))
    server.fail_next(SLOW_DOWN, RESET_BEFORE, TRUNCATED, Answer(500))
    assert rows_of(planned.to_arrow()) == expected
    assert not server.faults


def test_a_reader_without_permission_on_the_bucket(server: BucketServer, broker: Broker) -> None:
    topic = create(broker, "closed", **{"diskless.enable": "true"})
    produce(broker, topic, 10)
    expected = consumed(broker, topic)
    planned = read(broker, topic, storage=own_settings(server))
    server.fail_next(*[DENIED] * 20)
    with pytest.raises(StorageError, match=r"topic closed partition \d offset 0: .*403") as denied:
        planned.to_arrow()
    assert "testsecret" not in str(denied.value)
    server.faults.clear()
    assert rows_of(read(broker, topic, via="broker").to_arrow()) == expected


def test_tiered_segments_of_the_bucket(server: BucketServer) -> None:
    """Where the brokers keep them by default, with few requests; through brokers if refused."""
    still = {**SETTINGS_OF_TIERS, "diskless.tiering.prune.delay.ms": "3600000"}
    with Broker({**still, **s3_settings(server.endpoint)}) as broker:
        topic = create(broker, "far-tiers", **TOPIC)
        produce(broker, topic, 600)
        expected = consumed(broker, topic)
        tier_and_prune(broker, topic, {index: [90, 150] for index in range(3)})
        planned = read(broker, topic, storage=own_settings(server))
        before = len(server.requests)
        assert rows_of(planned.to_arrow()) == expected
        asked = [request for request in server.requests[before:] if "tiered/" in request]
        logs = [request for request in asked if request.endswith(".log")]
        assert len(logs) == len(set(logs)) == 6
        # And once for each manifest, with its size.
        assert len(asked) == 3 * len(logs)
        close_process()
        tiered = read(
            broker, topic, partitions=[1], end=100, threads=1, storage=own_settings(server)
        )
        server.fail_next(DENIED)
        assert rows_of(tiered.to_arrow()) == [
            row for row in expected if row["partition"] == 1 and row["offset"] < 100
        ]
        assert not server.faults


def test_a_bucket_that_cannot_be_reached(server: BucketServer, broker: Broker) -> None:
    topic = create(broker, "cut-off", **{"diskless.enable": "true"})
    produce(broker, topic, 10)
    nowhere = own_settings(
        server,
        **{
            "diskless.storage.s3.endpoint": "http://127.0.0.1:1",
            "diskless.storage.retries": "1",
        },
    )
    with pytest.raises(StorageError, match=r"topic cut-off partition . offset 0: cannot read wal/"):
        read(broker, topic, storage=nowhere).to_arrow()


def test_a_principal_without_read_gets_nothing() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    with Broker({**SETTINGS, "listeners": listeners}) as broker:
        world = World(
            broker.address("PLAINTEXT"),
            broker.address("SASL_PLAINTEXT"),
            broker.address("CONTROLLER"),
        )
        things = world.things()
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        login = f'{module} required username="{ALICE}" password="{PASSWORDS[ALICE]}";'
        config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": login,
        }

        def rows(via: str) -> int:
            found = read(broker, things.topic, bootstrap=world.sasl, config=config, via=via)
            return found.to_arrow().num_rows

        for granted in (None, AclOperation.DESCRIBE):
            if granted is not None:
                world.change_acls(f"User:{ALICE}", [(granted, ResourceType.TOPIC, things.topic)])
            for via in ("bucket", "broker"):
                with pytest.raises(KafkaError) as refused:
                    rows(via)
                assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        world.change_acls(f"User:{ALICE}", [(AclOperation.READ, ResourceType.TOPIC, things.topic)])
        assert rows("bucket") == rows("broker") > 0
        world.close()
        close_process()
