"""Tiered storage, field by field: the same script on skylog and on Kafka with its own.

Both keep their remote segments in directories of the same layout (Kafka's LocalTieredStorage).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.scenarios import tiered, tiered_changes  # noqa: F401 - they register themselves
from tests.interop.scenarios.remote import TIERED
from tests.interop.support import Node
from tests.interop.tiered import tiered_pair
from tests.interop.wire import Side, differences

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """A skylog and a Kafka with tiered storage that have just been started."""
    with tiered_pair(tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("kafkas")) as made:
        yield made


def traced(name: str, node: Node) -> list[tuple[str, object]]:
    side = Side(node.address, f"tiered-{name}".replace("_", "-"))
    try:
        TIERED[name](side)
    finally:
        side.close()
    return side.trace


@pytest.mark.parametrize("name", sorted(TIERED))
def test_answers_are_kafkas(name: str, pair: tuple[Node, Node]) -> None:
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(traced, name, node) for node in pair]
    ours, kafkas = (run.result() for run in runs)
    assert ours, "nothing was compared"
    different = differences(ours, kafkas)
    assert not different, "\n" + "\n".join(different)
