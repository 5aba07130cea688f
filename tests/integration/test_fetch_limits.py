"""The limits of a fetch, on every kind of topic and on several kinds in one request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skylog.testing import Broker
from tests.integration.broker_client import Client, batch, told, values

SETTINGS = {"diskless.metadata.topic.num.partitions": "2", "log.level": "FATAL"}
LOCAL = {**SETTINGS, "diskless.local.segments.enable": "true"}
VALUE = bytes(5000)
SIZE = len(batch(VALUE))
DISKLESS = {"diskless.enable": "true"}


@pytest.fixture(params=[SETTINGS, LOCAL], ids=["objects", "local"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with Broker(request.param) as broker, Client(broker.bootstrap) as connected:
        connected.create("classic", 2)
        connected.create("diskless", 4, DISKLESS)
        yield connected


def fill(client: Client, *places: tuple[str, int], batches: int = 3) -> None:
    for topic, index in places:
        for _ in range(batches):
            assert client.produce(topic, VALUE, index=index).error_code == 0


def counts(client: Client, *parts: tuple[str, int, int], **options: int) -> list[int]:
    """The number of batches, of one record each, by partition as requested."""
    found = told(client.fetch_all(*parts, **options))
    return [len(values(found[topic, index].records)) for topic, index, _ in parts]


@pytest.mark.parametrize("topic", ["classic", "diskless"])
def test_batches_are_returned_up_to_the_limit(client: Client, topic: str) -> None:
    fill(client, (topic, 0))
    first = (topic, 0, 1)
    assert counts(client, first, partition_max_bytes=6000) == [1]
    assert counts(client, first, partition_max_bytes=2 * SIZE) == [2]
    assert counts(client, first, max_bytes=2 * SIZE - 1) == [1]
    assert counts(client, first, partition_max_bytes=1, max_bytes=1) == [1]


@pytest.mark.parametrize("topic", ["classic", "diskless"])
def test_one_limit_for_several_partitions(client: Client, topic: str) -> None:
    fill(client, (topic, 0), (topic, 1))
    both = (topic, 0, 0), (topic, 1, 0)
    assert counts(client, *both, max_bytes=4 * SIZE) == [3, 1]
    assert counts(client, *both, max_bytes=4 * SIZE - 1) == [3, 0]
    assert counts(client, *both, partition_max_bytes=SIZE) == [1, 1]
    assert counts(client, *both, partition_max_bytes=SIZE - 1) == [1, 0]
    assert counts(client, (topic, 0, 3), (topic, 1, 0), max_bytes=1) == [0, 1]


@pytest.mark.parametrize("order", [("classic", "diskless"), ("diskless", "classic")])
def test_kinds_of_topics_share_one_limit(client: Client, order: tuple[str, str]) -> None:
    """Only one partition may exceed the limit with its first batch, whatever kinds the others
    are."""
    first, second = order
    fill(client, (first, 0), (second, 0))
    both = (first, 0, 0), (second, 0, 0)
    assert counts(client, *both, max_bytes=1) == [1, 0]
    assert counts(client, *both, max_bytes=4 * SIZE) == [3, 1]
    assert counts(client, *both, max_bytes=4 * SIZE - 1) == [3, 0]
    assert counts(client, (first, 0, 3), (second, 0, 0), max_bytes=1) == [0, 1]


def test_no_kind_of_topic_starves_another(client: Client) -> None:
    """The partitions of a session are served in turn."""
    places = [("classic", 0), ("classic", 1), ("diskless", 0), ("diskless", 1)]
    fill(client, *places, batches=4)
    offsets = dict.fromkeys(places, 0)
    answer = client.fetch_all(*((*place, 0) for place in places), session=(0, 0), max_bytes=1)
    for epoch in range(1, 12):
        (place,) = [place for place, one in told(answer).items() if one.records]
        offsets[place] += 1
        assert max(offsets.values()) - min(offsets.values()) <= 1
        session = answer.session_id, epoch
        answer = client.fetch_all((*place, offsets[place]), session=session, max_bytes=1)
