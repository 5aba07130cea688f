"""One skylog for all tests of real clients, and one JVM for all of Kafka's tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.interop.support import JavaTools, Node, start_skylog

_NUMBERS = count()


@pytest.fixture(scope="session")
def skylog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = start_skylog(tmp_path_factory.mktemp("skylog"))
    yield node
    assert node.process.alive, "skylog died"
    node.process.stop()


@pytest.fixture(scope="session")
def bootstrap(skylog: Node) -> str:
    return skylog.bootstrap


@pytest.fixture(scope="session")
def kafka_tool(skylog: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    tools = JavaTools(skylog.bootstrap, tmp_path_factory.mktemp("tools") / "log")
    yield tools
    tools.close()


@pytest.fixture
def name() -> Callable[[str], str]:
    """Names that no other test uses."""
    return lambda what="topic": f"{what}-{next(_NUMBERS)}"
