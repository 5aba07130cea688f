"""A coordinator that hangs, on a whole node: its effect on partitions of other coordinators."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from skylog.diskless.coordinator.log import CoordinatorLog
from skylog.kernel.errors import ErrorCode
from skylog.testing import Broker
from tests.integration.broker_client import PRODUCE_BY_NAME, Client, batch, produce_request, values
from tests.integration.diskless_support import create_topic

PARTITIONS = 4
SETTINGS = {"diskless.metadata.topic.num.partitions": "2", "log.level": "FATAL"}
HELD = 1


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """While it is set, no append of the coordinator ``HELD`` becomes durable."""
    holding = threading.Event()
    sync = CoordinatorLog._sync

    async def patient(self: CoordinatorLog) -> None:
        held_up = self._partition.index == HELD
        while held_up and holding.is_set():  # noqa: ASYNC110 - the test is in another thread
            await asyncio.sleep(0.005)
        await sync(self)

    monkeypatch.setattr(CoordinatorLog, "_sync", patient)
    yield holding
    holding.clear()


def errors(client: Client, value: bytes, timeout_ms: int) -> list[ErrorCode]:
    """The errors of one request to all partitions, in their order."""
    request = produce_request([("t", index, batch(value)) for index in range(PARTITIONS)])
    request.timeout_ms = timeout_ms
    answer = client.ask(request, PRODUCE_BY_NAME)
    answers = answer.responses[0].partition_responses
    return [ErrorCode(one.error_code) for one in sorted(answers, key=lambda one: one.index)]


def test_partitions_of_other_coordinators_are_acknowledged(held: threading.Event) -> None:
    # ENG-17, DC-21
    with Broker(SETTINGS) as broker, Client(broker.bootstrap) as client:
        create_topic(broker.bootstrap, "t", PARTITIONS)
        assert errors(client, b"before", 60_000) == [ErrorCode.NONE] * PARTITIONS
        held.set()
        found = errors(client, b"meanwhile", 5_000)
        assert set(found) == {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}
        waiting = [index for index, one in enumerate(found) if one]
        others = [index for index, one in enumerate(found) if not one]
        for number in range(3):
            for index in others:
                assert client.produce("t", b"%d" % number, index=index).error_code == 0
        for index in others:
            whole = [b"before", b"meanwhile", b"0", b"1", b"2"]
            assert values(client.fetch("t", index=index).records) == whole
        for index in waiting:
            assert values(client.fetch("t", index=index).records) == [b"before"]
        held.clear()
        assert errors(client, b"after", 60_000) == [ErrorCode.NONE] * PARTITIONS
        for index in waiting:
            whole = [b"before", b"meanwhile", b"after"]
            assert values(client.fetch("t", index=index).records) == whole
