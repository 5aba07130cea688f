"""The same requests to skylog and to Apache Kafka: every response must be the same.

A scenario (``scenarios/``) is a function that talks to one broker over raw sockets. It runs on
both, and the responses are compared field by field, except values that always differ between two
brokers and the wording of messages. Where we differ on purpose, the scenario says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.scenarios import (  # noqa: F401 - they register themselves
    cluster,
    configs,
    consumer_groups,
    fetch,
    groups,
    offsets,
    produce,
    protocol,
    security,
    topics,
    transaction_data,
    transactions,
)
from tests.interop.support import Node, start_kafka, start_skylog
from tests.interop.wire import SCENARIOS, Side, differences

pytestmark = pytest.mark.interop


SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """A skylog and a Kafka that have just been started."""
    ours = start_skylog(tmp_path_factory.mktemp("ours"), SETTINGS)
    kafkas = start_kafka(tmp_path_factory.mktemp("kafkas"), SETTINGS)
    yield ours, kafkas
    kafkas.process.stop()
    assert ours.process.alive
    ours.process.stop()


def traced(name: str, node: Node) -> list[tuple[str, object]]:
    side = Side(node.address, name.replace("_", "-"))
    try:
        SCENARIOS[name](side)
    finally:
        side.close()
    return side.trace


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_answers_are_kafkas(name: str, pair: tuple[Node, Node]) -> None:
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(traced, name, node) for node in pair]
    ours, kafkas = (run.result() for run in runs)
    assert ours, "nothing was compared"
    different = differences(ours, kafkas)
    assert not different, "\n" + "\n".join(different)
