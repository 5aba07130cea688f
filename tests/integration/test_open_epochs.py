"""``skylog spark epochs``: incomplete writes, and the three ways to end them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.bulk.epoch import Step, writer_prefix
from skylog.bulk.process import close_process
from skylog.bulk.writer import EpochDriver
from skylog.client import bulk
from skylog.client.cluster import Cluster
from skylog.client.settings import ClientSettings
from skylog.testing import Broker
from tests.integration.cli_support import Cli
from tests.integration.diskless_support import create_topic
from tests.integration.test_bulk_write import Killed, context, killer, stage, values


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="module")
def broker(bucket: Path) -> Iterator[Broker]:
    settings = {"auto.create.topics.enable": "false", "diskless.storage.url": bucket.as_uri()}
    with Broker(settings) as running:
        yield running
        close_process()


@pytest.fixture
def cli(broker: Broker) -> Cli:
    return Cli(broker)


ROWS = [b"%d" % i for i in range(10)]


def begin(broker: Broker, topic: str, *, committed: int = 0) -> str:
    """An epoch whose driver crashes after some of its two objects are committed; returns its
    name."""
    create_topic(broker.bootstrap, topic, 2)
    writer = f"stream-{topic}"
    staged = stage(broker, topic, ROWS)
    with pytest.raises(Killed):
        EpochDriver(context(broker), writer, killer(Step.COMMIT)).complete(0, staged)
    objects = [one for part in staged for one in part.objects][:committed]

    async def commit() -> None:
        cluster = Cluster(ClientSettings.of({"bootstrap.servers": broker.bootstrap}))
        try:
            for one in objects:
                (result,) = await bulk.commit_staged(cluster, writer, 0, [one])
                assert not result.error
        finally:
            await cluster.close()

    asyncio.run(commit())
    return f"{writer}/0"


def manifest_of(bucket: Path, writer: str) -> Path:
    folder = writer_prefix("", writer).removeprefix("w/").strip("/")
    (found,) = bucket.rglob(f"{folder}/*.manifest")
    return found


def expire(bucket: Path, writer: str) -> None:
    """Let the epoch's pins expire."""
    path = manifest_of(bucket, writer)
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "expires_ms": 1}))


def opened(cli: Cli, name: str) -> dict[str, object] | None:
    found = [row for row in cli.json("spark", "epochs")["epochs"] if row["epoch"] == name]
    return found[0] if found else None


def restart(broker: Broker, topic: str) -> None:
    """Restart the query, with new objects."""
    EpochDriver(context(broker), f"stream-{topic}").complete(0, stage(broker, topic, ROWS))


def test_an_epoch_is_shown_and_finished(broker: Broker, cli: Cli) -> None:
    name = begin(broker, "finished", committed=1)
    row = opened(cli, name)
    assert row is not None
    assert (row["objects"], row["committed"], row["topics"]) == (2, 1, ["finished"])
    assert str(row["advice"]).startswith("restart its query, or --finish")
    assert name in cli.ok("spark", "epochs")
    assert values(broker, "finished") != Counter(ROWS)
    cli.ok("spark", "epochs", "--finish", name)
    assert opened(cli, name) is None
    assert values(broker, "finished") == Counter(ROWS)
    restart(broker, "finished")
    assert values(broker, "finished") == Counter(ROWS)


def test_an_epoch_is_left_as_it_is(broker: Broker, cli: Cli) -> None:
    name = begin(broker, "skipped", committed=1)
    half = values(broker, "skipped")
    assert 0 < half.total() < len(ROWS)
    cli.ok("spark", "epochs", "--skip", name, "--yes")
    assert opened(cli, name) is None
    restart(broker, "skipped")
    assert values(broker, "skipped") == half
    EpochDriver(context(broker), "stream-skipped").complete(1, stage(broker, "skipped", ROWS))
    assert values(broker, "skipped") == half + Counter(ROWS)


def test_an_epoch_is_restarted(broker: Broker, cli: Cli, bucket: Path) -> None:
    name = begin(broker, "again")
    expire(bucket, "stream-again")
    row = opened(cli, name)
    assert row is not None and str(row["advice"]).startswith("none of it is committed: --again")
    error = cli.fails("spark", "epochs", "--finish", name)
    assert "epoch 0 of writer stream-again was begun and not completed before" in error
    cli.ok("spark", "epochs", "--again", name, "--yes")
    restart(broker, "again")
    assert values(broker, "again") == Counter(ROWS)


def test_a_partly_written_expired_epoch_needs_an_operator(
    broker: Broker, cli: Cli, bucket: Path
) -> None:
    name = begin(broker, "judged", committed=1)
    expire(bucket, "stream-judged")
    row = opened(cli, name)
    assert row is not None and str(row["advice"]).startswith("compare the topics with the source")
    half = values(broker, "judged")
    cli.ok("spark", "epochs", "--again", name, "--yes")
    restart(broker, "judged")
    assert values(broker, "judged") == half + Counter(ROWS)


def test_all_committed_and_expired(broker: Broker, cli: Cli, bucket: Path) -> None:
    name = begin(broker, "whole", committed=2)
    expire(bucket, "stream-whole")
    row = opened(cli, name)
    assert row is not None and str(row["advice"]).startswith("all of it is committed: --skip")
    cli.ok("spark", "epochs", "--skip", name, "--yes")
    assert values(broker, "whole") == Counter(ROWS)


def test_mistakes_are_named_and_change_nothing(broker: Broker, cli: Cli, bucket: Path) -> None:
    name = begin(broker, "mistakes")
    assert f"no open epoch 'x/1'; open are {name}" in cli.fails("spark", "epochs", "--skip", "x/1")
    both = cli.fails("spark", "epochs", "--skip", name, "--again", name, code=2)
    assert "--skip and --again: give only one of them" in both
    path = manifest_of(bucket, "stream-mistakes")
    whole = path.read_bytes()
    for bad, why in (
        (b"{", "the manifest cannot be read"),
        (whole.replace(b"stream-mistakes", b"stream-mistaken"), "whose place is another"),
        (whole.replace(b'"version":0', b'"version":9'), "version 9"),
    ):
        path.write_bytes(bad)
        found = cli.json("spark", "epochs")
        assert not [row for row in found["epochs"] if row["epoch"] == name]
        (unreadable,) = found["unreadable"]
        assert path.name in unreadable["manifest"] and why in unreadable["why"]
    path.write_bytes(whole)
    cli.ok("spark", "epochs", "--finish", name)
    assert values(broker, "mistakes") == Counter(ROWS)
    assert "no epoch is incomplete" in cli.run("spark", "epochs").output
