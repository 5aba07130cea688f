"""What stays on a broker's disk of a topic with remote storage, and what clients see of it."""

from __future__ import annotations

from pathlib import Path

from skylog.kernel.errors import ErrorCode
from skylog.log.checkpoints import LOG_START_CHECKPOINT, decode_offsets
from skylog.testing import Broker
from tests.integration import tiered_topics
from tests.integration.broker_client import Client
from tests.integration.tiered_topics import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    LOCAL,
    PENDING,
    TIERED,
    alter,
    delete_records,
    fill,
    offsets,
    read_all,
    until_offset,
)
from tests.waiting import until

SETTINGS = tiered_topics.SETTINGS


def segments(broker: Broker, topic: str) -> list[int]:
    return sorted(int(path.stem) for path in (broker.directory / f"{topic}-0").glob("*.log"))


def entry(directory: Path, topic: str) -> int | None:
    return decode_offsets((directory / LOG_START_CHECKPOINT).read_text()).get((topic, 0))


def test_only_what_was_copied_goes_and_clients_read_on(broker: Broker, client: Client) -> None:
    client.create("t", configs=TIERED)
    fill(client, "t", 0, 23)
    # The last segment breaches the limit, too: it is rolled, copied and dropped.
    until_offset(client, "t", EARLIEST_LOCAL, 23)
    assert offsets(client, "t", EARLIEST, LATEST, LATEST_TIERED, PENDING) == [0, 23, 22, -1]
    assert entry(broker.directory, "t") == 0
    until(lambda: segments(broker, "t") == [23])
    read_all(client, "t", 0, 23)
    fill(client, "t", 23, 24)
    assert client.offset("t", PENDING).offset in (23, -1)
    until_offset(client, "t", EARLIEST_LOCAL, 24)
    read_all(client, "t", 0, 24)
    beyond = client.fetch("t", 25)
    assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_local_limits_that_are_not_reached_keep_everything(client: Client) -> None:
    client.create("kept", configs={**TIERED, "local.retention.bytes": "-2"})
    fill(client, "kept", 0, 12)
    until_offset(client, "kept", LATEST_TIERED, 9)
    assert offsets(client, "kept", EARLIEST, EARLIEST_LOCAL, PENDING) == [0, 0, 10]
    alter(client, "kept", local_retention_bytes="0")
    until_offset(client, "kept", EARLIEST_LOCAL, 12)
    read_all(client, "kept", 0, 12)


def test_records_are_deleted_below_and_above_the_local_start(client: Client) -> None:
    client.create("d", configs=TIERED)
    fill(client, "d", 0, 12)
    until_offset(client, "d", EARLIEST_LOCAL, 12)
    assert delete_records(client, "d", 7) == 7
    assert offsets(client, "d", EARLIEST, EARLIEST_LOCAL) == [7, 12]
    assert client.fetch("d", 6).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    read_all(client, "d", 7, 12)
    alter(client, "d", local_retention_bytes="-2")
    fill(client, "d", 12, 15)
    assert delete_records(client, "d", 13) == 13
    assert offsets(client, "d", EARLIEST, EARLIEST_LOCAL) == [13, 13]
    assert client.fetch("d", 12).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    read_all(client, "d", 13, 15)


def test_switched_on_while_it_is_used(broker: Broker, client: Client) -> None:
    client.create("on", configs=LOCAL)
    fill(client, "on", 0, 12)
    assert delete_records(client, "on", 2) == 2
    assert offsets(client, "on", EARLIEST_LOCAL, LATEST_TIERED, PENDING) == [2, -1, -1]
    alter(client, "on", remote_storage_enable="true", local_retention_bytes="0")
    until_offset(client, "on", EARLIEST_LOCAL, 12)
    assert offsets(client, "on", EARLIEST, LATEST_TIERED) == [2, 11]
    assert entry(broker.directory, "on") == 2
    read_all(client, "on", 2, 12)


def test_switched_off_the_log_begins_on_this_disk(broker: Broker, client: Client) -> None:
    client.create("off", configs=TIERED)
    fill(client, "off", 0, 12)
    until_offset(client, "off", EARLIEST_LOCAL, 12)
    alter(client, "off", local_retention_bytes="-2")
    fill(client, "off", 12, 20)
    alter(client, "off", remote_storage_enable="false", remote_log_delete_on_disable="true")
    until_offset(client, "off", EARLIEST, 12)
    assert offsets(client, "off", EARLIEST_LOCAL, LATEST_TIERED, PENDING) == [12, -1, -1]
    assert client.fetch("off", 11).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    read_all(client, "off", 12, 20)
    until(lambda: entry(broker.directory, "off") is None)


def test_with_copying_off_the_total_limits_hold_here(client: Client) -> None:
    client.create("c", configs={**TIERED, "local.retention.bytes": "-2"})
    fill(client, "c", 0, 12)
    until_offset(client, "c", LATEST_TIERED, 9)
    alter(client, "c", remote_log_copy_disable="true", retention_bytes="0")
    until_offset(client, "c", EARLIEST, 12)
    assert offsets(client, "c", EARLIEST_LOCAL, LATEST) == [12, 12]


def test_both_starts_outlive_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with Broker(SETTINGS, directory=directory) as first, Client(first.bootstrap) as client:
        client.create("r", configs=TIERED)
        fill(client, "r", 0, 12)
        until_offset(client, "r", EARLIEST_LOCAL, 12)
        delete_records(client, "r", 3)
        alter(client, "r", local_retention_bytes="-2")
        fill(client, "r", 12, 19)
    with Broker(SETTINGS, directory=directory) as second, Client(second.bootstrap) as client:
        assert offsets(client, "r", EARLIEST, EARLIEST_LOCAL, LATEST) == [3, 12, 19]
        read_all(client, "r", 3, 19)
        until_offset(client, "r", LATEST_TIERED, 16)
        assert client.offset("r", PENDING).offset == 17
        # The second broker leads in a new epoch, from 19 on.
        fill(client, "r", 19, 23)
        until_offset(client, "r", LATEST_TIERED, 21)
        epochs = [client.offset("r", kind).leader_epoch for kind in (EARLIEST, EARLIEST_LOCAL)]
        assert epochs == [0, 0]
        latest = client.offset("r", LATEST).leader_epoch
        assert latest > 0
        assert client.offset("r", LATEST_TIERED).leader_epoch == latest
        assert client.offset("r", PENDING).leader_epoch == latest
        # Of what was deleted only the offset is known.
        delete_records(client, "r", 22)
        found = client.offset("r", LATEST_TIERED)
        assert (found.offset, found.leader_epoch) == (21, -1)
