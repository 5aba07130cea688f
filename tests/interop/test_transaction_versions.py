"""Clusters with an older ``transaction.version``: the same responses as Kafka's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from skylog.wire.apis import ApiKey
from tests.interop.scenarios import transactions
from tests.interop.support import Node, start_kafka, start_skylog
from tests.interop.wire import Side, differences

pytestmark = pytest.mark.interop

SETTINGS = {
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
SAFE_DOWNGRADE = 2
# Version 5 of EndTxn is for clients of transaction version 2, which check the feature first: with
# version 0 Kafka hangs on it.
SCENARIOS = {
    "ends": partial(transactions.ends_in, versions=range(5)),
    "taking over": transactions.taking_over,
    "time-outs": transactions.time_outs,
    "the log": partial(transactions.log_of, versions=(3, 4)),
}


@pytest.fixture(scope="module", params=[1, 0])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Node, Node]]:
    """A skylog and a Kafka with the same older version."""
    nodes = (
        start_skylog(tmp_path_factory.mktemp("ours"), SETTINGS),
        start_kafka(tmp_path_factory.mktemp("kafkas"), SETTINGS),
    )
    update = {
        "feature": "transaction.version",
        "max_version_level": request.param,
        "upgrade_type": SAFE_DOWNGRADE,
    }
    for node in nodes:
        side = Side(node.address, "features")
        answer = side.quiet(ApiKey.UPDATE_FEATURES, 1, timeout_ms=10_000, feature_updates=[update])
        assert answer.error_code == 0, answer
        side.settle()
        side.close()
    yield nodes
    for node in nodes:
        node.process.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_kafkas(name: str, pair: tuple[Node, Node]) -> None:
    def traced(node: Node) -> list[tuple[str, object]]:
        side = Side(node.address, name.replace(" ", "-"))
        try:
            SCENARIOS[name](side)
        finally:
            side.close()
        return side.trace

    with ThreadPoolExecutor(2) as threads:
        ours, kafkas = threads.map(traced, pair)
    assert ours, "nothing was compared"
    different = differences(ours, kafkas)
    assert not different, "\n" + "\n".join(different)
