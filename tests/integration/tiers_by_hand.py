"""Diskless topics whose tiers are built by hand: tiered segments, a pruned WAL, local copies.

Nothing moves by itself here: segments are never full, and nothing is pruned within a test.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from skylog.diskless.local.round import Round
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import random_uuid, system_random
from skylog.log.checkpoints import encode_epochs
from skylog.objects.local import LocalStore
from skylog.testing.cluster import Cluster, ClusterNode
from skylog.tiered.assembly import SegmentAssembler, snapshots
from skylog.tiered.metadata.records import segment_started, segment_updated
from skylog.tiered.ports import Published, SegmentFiles
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.batch import split_batches
from tests.integration import racks_cluster
from tests.integration.broker_client import NOW, values
from tests.integration.racks_cluster import ZoneClient
from tests.waiting import eventually, until

SETTINGS: Mapping[str, str] = {
    "remote.log.storage.system.enable": "true",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
    "diskless.metadata.backup.interval.ms": "0",
    "diskless.tiering.prune.delay.ms": "3600000",
    "diskless.produce.commit.interval.ms": "5",
    # Every read goes to the store.
    "diskless.fetch.cache.max.bytes": "0",
    "tiered.fetch.cache.max.bytes": "0",
    "tiered.fetch.prefetch.max.bytes": "0",
    **racks_cluster.CALM,
}
PER_BATCH = 100
MS_APART = 10


@contextmanager
def three_brokers(**settings: str) -> Iterator[Cluster]:
    """In two racks: topics have two replicas, and one broker has none."""
    more = {name.replace("_", "."): text for name, text in settings.items()}
    with racks_cluster.racks_cluster(3, ("a", "b"), settings={**SETTINGS, **more}) as cluster:
        yield cluster


def create(cluster: Cluster, topic: str, partitions: int = 1, **configs: str) -> None:
    given = {"retention_ms": "-1", "remote_storage_enable": "true", **configs}
    answer = racks_cluster.create(cluster, topic, partitions, **given)
    assert answer.error_code == 0, answer


# --- Brokers --------------------------------------------------------------------------------------


def key_of(broker: ClusterNode, topic: str, index: int = 0) -> TopicIdPartition:
    found = broker.node.image.topic(topic)
    assert found is not None
    return TopicIdPartition(found.topic_id, index)


def tiered(broker: ClusterNode) -> Any:
    return broker.node._services.tiered


def leader_of(cluster: Cluster, topic: str, index: int = 0) -> ClusterNode:
    return cluster.broker(racks_cluster.described(cluster, topic)[index].leader_id)


def replicas_of(cluster: Cluster, topic: str, index: int = 0) -> list[ClusterNode]:
    return [cluster.broker(one) for one in racks_cluster.replicas_of(cluster, topic)[index]]


def outsider(cluster: Cluster, topic: str, index: int = 0) -> ClusterNode:
    """The broker that has no replica."""
    with_replica = replicas_of(cluster, topic, index)
    (found,) = [broker for broker in cluster.brokers if broker not in with_replica]
    return found


# --- Records --------------------------------------------------------------------------------------


def value(offset: int) -> bytes:
    return b"%06d" % offset


def fill(broker: ClusterNode, topic: str, start: int, end: int, index: int = 0) -> None:
    """Records in batches of ``PER_BATCH``, each in a WAL object of its own."""
    with ZoneClient(broker.bootstrap) as client:
        for first in range(start, end, PER_BATCH):
            offsets = range(first, min(first + PER_BATCH, end))
            times = [NOW + MS_APART * offset for offset in offsets]
            answer = client.produce(topic, *map(value, offsets), index=index, timestamps=times)
            assert (answer.error_code, answer.base_offset) == (0, first)


def fetch(broker: ClusterNode, topic: str, offset: int, index: int = 0, **options: Any) -> Any:
    with ZoneClient(broker.bootstrap) as client:
        return client.fetch(topic, offset, index, **options)


def offsets_in(answer: Any) -> list[int]:
    """The offsets of an answer, whose values say the same."""
    found: list[int] = []
    for one in split_batches(answer.records or b""):
        assert one.crc_ok()
        assert one.leader_epoch == 0
        some = list(range(one.base_offset, one.next_offset))
        assert values(one.buffer) == [value(offset) for offset in some]
        found += some
    return found


def read(broker: ClusterNode, topic: str, start: int, end: int, index: int = 0) -> None:
    """All of [start, end) at one broker, once and in order, without an error."""
    offset = start
    with ZoneClient(broker.bootstrap) as client:
        while offset < end:
            answer = client.fetch(topic, offset, index, wait_ms=1000)
            assert answer.error_code == 0, (offset, answer)
            found = [one for one in offsets_in(answer) if one >= offset]
            assert found == list(range(offset, offset + len(found)))
            offset += len(found)


# --- Tiers ----------------------------------------------------------------------------------------


def tier(
    cluster: Cluster, topic: str, start: int, end: int, index: int = 0, *, finish: bool = True
) -> RemoteSegment:
    """Copy [start, end), as a saga does, to one tiered segment; every replica knows it then."""
    leader = leader_of(cluster, topic, index)
    batches: list[bytes] = []
    offset = start
    while offset < end:
        answer = fetch(leader, topic, offset, index)
        some = [one for one in split_batches(answer.records) if one.last_offset < end]
        batches += [bytes(one.buffer) for one in some]
        offset = some[-1].next_offset
    key = key_of(leader, topic, index)
    with tempfile.TemporaryDirectory() as folder:
        segment, files = assembled(Path(folder), key, topic, start, batches)
        epoch = racks_cluster.described(cluster, topic)[index].leader_epoch
        segment = replace(segment, copier_epoch=epoch)  # its leader does not take it for a rest
        leader.run(copied_by_hand(tiered(leader), segment, files, finish=finish))
    if finish:
        for broker in replicas_of(cluster, topic, index):
            if broker.running:
                until(lambda one=broker: _knows(one, key, start), f"{start} is known")  # type: ignore[misc]
    return segment


def _knows(broker: ClusterNode, key: TopicIdPartition, offset: int) -> bool:
    remote = tiered(broker).logs.get(key)
    return remote is not None and bool(remote.has(0, offset))


def assembled(
    folder: Path, key: TopicIdPartition, topic: str, start: int, batches: Sequence[bytes]
) -> tuple[RemoteSegment, SegmentFiles]:
    assembler = SegmentAssembler(start, interval_bytes=1000)
    for one in batches:
        assembler.add(one)
    made = assembler.finish()
    contents = {
        "log": b"".join(batches),
        "index": made.offset_index,
        "timeindex": made.time_index,
        "snapshot": snapshots([made])[0],
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    paths = [str(folder / name) for name in ("log", "index", "timeindex")]
    snapshot = str(folder / "snapshot")
    files = SegmentFiles(
        paths[0], paths[1], paths[2], None, snapshot, encode_epochs(((0, 0),)).encode()
    )
    segment = RemoteSegment(
        topic=topic,
        partition=key,
        id=random_uuid(system_random()),
        start_offset=start,
        end_offset=made.last_offset,
        broker_id=1,
        max_timestamp_ms=made.max_timestamp,
        event_timestamp_ms=NOW,
        epochs=((0, start),),
        size=made.size,
        txn_index_empty=True,
    )
    return segment, files


async def copied_by_hand(
    parts: Any, segment: RemoteSegment, files: SegmentFiles, *, finish: bool
) -> None:
    await parts.metadata_topic.create()
    await eventually(lambda: parts.metadata_topic.partition_count)
    async with asyncio.timeout(60):
        await parts.logs.ready(segment.partition)
    publish = parts.logs.publish
    assert await publish(segment.partition, segment_started(segment)) is Published.EFFECTIVE
    await parts.storage.copy(segment, files)
    if finish:
        done = segment_updated(
            segment,
            SegmentState.COPY_FINISHED,
            broker_id=1,
            now_ms=NOW,
            copier_epoch=segment.copier_epoch,
        )
        assert await publish(segment.partition, done) is Published.EFFECTIVE


def prune(broker: ClusterNode, topic: str, offset: int, index: int = 0) -> None:
    """The coordinator forgets the WAL batches below ``offset``."""
    plane = broker.node._services.diskless.plane
    (result,) = broker.run(plane.prune_to([(*key_of(broker, topic, index), offset)]))
    assert (result.error, result.wal_start_offset) == (0, offset)


def copy_from(broker: ClusterNode, topic: str, offset: int, index: int = 0) -> None:
    """Let the local copy of a broker begin at ``offset``, where the log ends now."""
    local = broker.node._services.diskless.local
    key = key_of(broker, topic, index)
    # A copy that has nothing to do is looked at from time to time, and would begin elsewhere.
    local.partitions.look_at_all = lambda: None

    async def begin() -> None:
        one = local.partitions.get(key)
        await eventually(lambda: one.following and one.round is None)
        local.partitions.start_over(one)
        one.next_offset, one.unsure = offset, False

    until(lambda: local.partitions.get(key) is not None)
    broker.run(begin())


def until_copied(broker: ClusterNode, topic: str, start: int, end: int, index: int = 0) -> None:
    local, key = broker.node._services.diskless.local, key_of(broker, topic, index)

    def copied() -> bool:
        one = local.partitions.get(key)
        return bool(one.following and one.copy is not None and one.region == (start, end))

    until(copied, f"the copy is not [{start}, {end})")


# --- The store's log ------------------------------------------------------------------------------


class StoreLog:
    """The keys that were read from the stores, by broker."""

    def __init__(self) -> None:
        self._reads: list[tuple[object, str]] = []

    def note(self, store: object, key: str) -> None:
        self._reads.append((store, key))

    def clear(self) -> None:
        self._reads.clear()

    def kinds(self, broker: ClusterNode) -> set[str]:
        """Where a broker has read records: "wal", "tiered"."""
        services = broker.node._services
        stores = _innermost(services.diskless.store), _innermost(services.tiered.storage.store)
        found = {key for store, key in self._reads if store in stores}
        kinds = {"wal" if key.startswith("wal/") else "tiered" for key in found}
        return {kind for kind in kinds if kind}

    def keys(self, broker: ClusterNode) -> list[str]:
        services = broker.node._services
        stores = _innermost(services.diskless.store), _innermost(services.tiered.storage.store)
        return sorted({key for store, key in self._reads if store in stores})


def _innermost(store: Any) -> Any:
    while hasattr(store, "_inner"):
        store = store._inner
    return store


@contextmanager
def store_log() -> Iterator[StoreLog]:
    """What fetches read; local copies are filled and compared in the background, at any time."""
    log = StoreLog()
    get, get_now, fill_copies = LocalStore.get, LocalStore.get_now, Round.run
    in_background: ContextVar[bool] = ContextVar("in_background", default=False)

    async def filling(self: Round) -> None:
        in_background.set(True)  # each round is a task of its own
        await fill_copies(self)

    async def noted(self: Any, key: Any, *more: Any) -> bytes:
        if not in_background.get():
            log.note(self, key.text)
        return await get(self, key, *more)

    def noted_now(self: Any, key: Any, *more: Any) -> bytearray | None:
        if not in_background.get():
            log.note(self, key.text)
        return get_now(self, key, *more)

    with (
        mock.patch.multiple(LocalStore, get=noted, get_now=noted_now),
        mock.patch.object(Round, "run", filling),
    ):
        yield log


def topic_directories(broker: ClusterNode, topic: str) -> list[str]:
    """What a broker has of a topic on its disk."""
    return sorted(
        str(path.relative_to(broker.directory)) for path in broker.directory.rglob(f"{topic}-*")
    )


def uuid_text(broker: ClusterNode, topic: str) -> str:
    found: Uuid = key_of(broker, topic).topic_id
    return str(found)
