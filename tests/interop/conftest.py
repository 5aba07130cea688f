"""One skylog for all tests of real clients, and one JVM for all of Kafka's tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.interop.clients import CLIENTS, Client
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


@pytest.fixture(scope="session")
def client(bootstrap: str) -> Iterator[Callable[[str], Client]]:
    """Real clients by name, each started once."""
    started: dict[str, Client] = {}

    def get(name: str) -> Client:
        if name not in started:
            started[name] = CLIENTS[name](bootstrap)
        return started[name]

    yield get
    for one in started.values():
        one.close()


@pytest.fixture
def topic(bootstrap: str, name: Callable[[str], str]) -> Callable[..., str]:
    """Topics that no other test uses."""

    def create(partitions: int = 1, **configs: str) -> str:
        from confluent_kafka.admin import AdminClient, NewTopic

        new = NewTopic(
            name("topic"),
            partitions,
            1,
            config={k.replace("_", "."): v for k, v in configs.items()},
        )
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([new])[new.topic].result()
        return str(new.topic)

    return create


@pytest.fixture
def name() -> Callable[[str], str]:
    """Names that no other test uses."""
    return lambda what="topic": f"{what}-{next(_NUMBERS)}"
