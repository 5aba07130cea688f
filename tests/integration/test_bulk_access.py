"""Permissions of bulk readers and writers: no user reads or commits what is not its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from skylog.bulk.epoch import NotBegun
from skylog.bulk.staging import ClusterBrokers, EpochCommitter, StagingArea
from skylog.bulk.store import open_bulk_store
from skylog.client import bulk
from skylog.client.bulk import PartitionRange
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.keys import staging_owner
from skylog.testing import Broker
from tests.integration.auth_world import ADMIN, ALICE, SETTINGS, World
from tests.integration.bulk_support import HOUR_MS, Stage, cluster, object_path
from tests.integration.diskless_uploader import new_topic

NONE = ErrorCode.NONE
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    settings = {
        **SETTINGS,
        "listeners": (
            "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
        ),
        "diskless.metadata.topic.num.partitions": "2",
        "log.level": "ERROR",
    }
    with Broker(settings) as broker:
        names = ("PLAINTEXT", "SASL_PLAINTEXT", "CONTROLLER")
        made = World(*(broker.address(name) for name in names))
        yield made
        made.close()


def allow(world: World, operation: AclOperation, *topics: str) -> None:
    grants = [(operation, ResourceType.TOPIC, name) for name in topics]
    world.change_acls(f"User:{ALICE}", grants)


async def test_without_read_there_are_no_coordinates(world: World) -> None:
    """Neither by plan nor by guess, and without learning whether the topic exists."""
    secret, shared = new_topic(world.admin, "secret"), new_topic(world.admin, "shared")
    async with cluster(world.sasl, ADMIN) as admin:
        info = await bulk.staging_info(admin)
        stage = Stage(info.prefix).add("secret", secret, b"s").add("shared", shared, b"t")
        (result,) = await bulk.commit_staged(admin, "w", 1, [stage.put(info.storage_url)])
        assert result.error is NONE
        whole = await bulk.plan_ranges(admin, [PartitionRange("secret", 0)], 1 << 20)
        (split,) = whole.partitions[0].splits
    allow(world, AclOperation.READ, "shared")
    allow(world, AclOperation.WRITE, "secret")
    ranges = [PartitionRange(name, 0) for name in ("secret", "absent", "shared")]
    async with cluster(world.sasl, ALICE) as alice:
        plan = await bulk.plan_ranges(alice, ranges, 1 << 20)
        denied, absent, allowed = plan.partitions
        assert [one.error for one in plan.partitions] == [DENIED, DENIED, NONE]
        assert (denied.splits, denied.high_watermark, denied.log_start_offset) == ((), -1, -1)
        assert denied.topic_id == absent.topic_id
        assert not denied.diskless
        assert len(allowed.splits) == 1
        for guess in (split, replace(split, topic="absent")):
            with pytest.raises(KafkaError) as refused:
                await bulk.locate_batches(alice, guess)
            assert refused.value.code is DENIED
        # A permission on one topic does not extend to another by its id.
        with pytest.raises(KafkaError) as mixed:
            await bulk.locate_batches(alice, replace(split, topic="shared"))
        assert mixed.value.code is ErrorCode.UNKNOWN_TOPIC_ID
        assert len((await bulk.locate_batches(alice, allowed.splits[0])).batches) == 1
        # No plan, and nothing about the bucket.
        nothing = await bulk.plan_ranges(alice, ranges[:2], 1 << 20)
        assert nothing.storage_url is None
    world.revoke_all(f"User:{ALICE}")


async def watermark(world: World, topic: str) -> int:
    async with cluster(world.sasl, ADMIN) as admin:
        plan = await bulk.plan_ranges(admin, [PartitionRange(topic, 0)], 1 << 20)
        return plan.partitions[0].high_watermark


async def test_without_write_nothing_is_committed(world: World) -> None:
    """One topic without permission is enough to refuse the whole object."""
    mine, theirs = new_topic(world.admin, "mine"), new_topic(world.admin, "theirs")
    async with cluster(world.sasl, ALICE) as alice:
        with pytest.raises(KafkaError) as refused:
            await bulk.staging_info(alice)
        assert refused.value.code is DENIED
        allow(world, AclOperation.WRITE, "mine")
        allow(world, AclOperation.READ, "theirs")
        info = await bulk.staging_info(alice)
        assert info.prefix == f"staging/{staging_owner('User:alice')}/"
        stage = Stage(info.prefix).add("mine", mine, b"m").add("theirs", theirs, b"t")
        staged = stage.put(info.storage_url)
        (result,) = await bulk.commit_staged(alice, "w", 1, [staged])
        assert result.error is DENIED
        assert [b.error for b in result.batches] == [ErrorCode.OPERATION_NOT_ATTEMPTED, DENIED]
        (pinned,) = await bulk.pin_staged(alice, "w", 1, [staged], HOUR_MS)
        assert pinned.error is DENIED
        assert await watermark(world, "mine") == await watermark(world, "theirs") == 0
        allow(world, AclOperation.WRITE, "theirs")
        (result,) = await bulk.commit_staged(alice, "w", 1, [staged])
        assert [b.base_offset for b in result.batches] == [0, 0]
    world.revoke_all(f"User:{ALICE}")


async def test_objects_of_another_principal_cannot_be_committed(world: World) -> None:
    topic_id = new_topic(world.admin, "common")
    allow(world, AclOperation.WRITE, "common")
    async with cluster(world.sasl, ADMIN) as admin, cluster(world.sasl, ALICE) as alice:
        info = await bulk.staging_info(admin)
        assert info.prefix != (await bulk.staging_info(alice)).prefix
        staged = Stage(info.prefix).add("common", topic_id, b"v").put(info.storage_url)
        foreign = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        (result,) = await bulk.commit_staged(alice, "w", 1, [staged])
        assert (result.error, result.message) == (
            foreign,
            f"{staged.key} was staged by another principal",
        )
        (pinned,) = await bulk.pin_staged(alice, "w", 1, [staged], HOUR_MS)
        assert pinned.error is foreign
        assert (await bulk.pin_staged(admin, "w", 1, [staged], HOUR_MS))[0].error is NONE
        (released,) = await bulk.pin_staged(alice, "w", 1, [staged], 0, release=True)
        assert released.error is foreign
        assert await watermark(world, "common") == 0
        (result,) = await bulk.commit_staged(admin, "w", 1, [staged])
        assert result.error is NONE
        # Nor are the offsets of another user's commit returned.
        (result,) = await bulk.commit_staged(alice, "w", 1, [staged])
        assert (result.error, result.batches[0].base_offset) == (foreign, -1)
    world.revoke_all(f"User:{ALICE}")


async def test_permissions_lost_before_the_commit_leave_nothing(world: World) -> None:
    """Tasks were allowed to stage; the permission is gone when the driver commits."""
    topic_id = new_topic(world.admin, "lost")
    allow(world, AclOperation.WRITE, "lost")
    async with cluster(world.sasl, ALICE) as alice:
        info = await bulk.staging_info(alice)
        staged = Stage(info.prefix).add("lost", topic_id, b"v").put(info.storage_url)
        world.revoke_all(f"User:{ALICE}")
        allow(world, AclOperation.WRITE, "elsewhere")
        store = open_bulk_store(info.storage_url or "", {})
        system = alice.system
        area = StagingArea(ClusterBrokers(alice), store, info.prefix, system.clock, system.rng)
        with pytest.raises(NotBegun, match=r"nothing is written: .*Not authorized to write lost"):
            await EpochCommitter(area, "w").complete(1, [staged])
        assert not object_path(info.storage_url, staged.key).exists()
        assert [info async for info in store.list(f"{info.prefix}w/")] == []
        await store.close()
    assert await watermark(world, "lost") == 0
    world.revoke_all(f"User:{ALICE}")
