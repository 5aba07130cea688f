"""The controller over a log whose high watermark lags."""

from __future__ import annotations

import asyncio
import random

import pytest

from skylog.controller.settings import ControllerSettings, bootstrap_records
from skylog.controller.shell import Controller, MetadataCodec
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.create_topics_request import CreateTopicsRequest
from tests.unit.controller.support import LEVELS, FewConfigs, registration, topic
from tests.unit.replicated.support import LaggingLog, ManualTimers


class Shell:
    def __init__(self, log: LaggingLog | None = None) -> None:
        self.log = log or LaggingLog()
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.failures: list[Exception] = []
        settings = ControllerSettings(1, "cluster", (1,), bootstrap_records(LEVELS))
        self.controller = Controller(
            settings,
            FewConfigs(),
            self.log,
            clock=self.clock,
            rng=random.Random(7),
            timers=self.timers,
            on_failure=self.failures.append,
        )

    async def ask(self, message: object, version: int = 4) -> object:
        task = asyncio.ensure_future(self.controller.submit(message, version))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        self.log.commit()
        return await task


async def test_the_controller_answers_once_its_records_are_committed() -> None:
    shell = Shell()
    await shell.controller.start()
    assert shell.controller.active
    task = asyncio.ensure_future(shell.controller.submit(registration(1), 4))
    await asyncio.sleep(0)
    assert not task.done()
    offset = shell.log.end_offset - 1
    shell.log.commit()
    assert (await task).broker_epoch == offset


async def test_what_was_written_is_read_back() -> None:
    shell = Shell()
    await shell.controller.start()
    epoch = (await shell.ask(registration(1))).broker_epoch  # type: ignore[attr-defined]
    await shell.ask(BrokerHeartbeatRequest(1, epoch, shell.log.end_offset))
    response = await shell.ask(CreateTopicsRequest([topic("t", 3)]), 7)
    assert response.topics[0].error_code == 0  # type: ignore[attr-defined]
    shell.controller.stop()
    assert not shell.controller.active
    with pytest.raises(KafkaError) as refused:
        await shell.controller.submit(CreateTopicsRequest(), 7)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER

    again = Shell(shell.log)
    await again.controller.start()
    response = await again.ask(CreateTopicsRequest([topic("t")]), 7)
    assert response.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS  # type: ignore[attr-defined]


async def test_a_request_that_fails_whole_raises() -> None:
    shell = Shell()
    await shell.controller.start()
    shell.log.commit()
    with pytest.raises(KafkaError) as refused:
        await shell.ask(registration(1, cluster_id="other"))
    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert shell.controller.active
    assert not shell.failures


async def test_a_session_ends_by_its_timer() -> None:
    shell = Shell()
    await shell.controller.start()
    epoch = (await shell.ask(registration(1))).broker_epoch  # type: ignore[attr-defined]
    await shell.ask(BrokerHeartbeatRequest(1, epoch, shell.log.end_offset))
    before = shell.log.end_offset
    shell.timers.advance(8_999)
    assert shell.log.end_offset == before
    shell.timers.advance(1)
    assert shell.log.end_offset == before + 1


async def test_a_snapshot_stands_for_the_log_before_it() -> None:
    shell = Shell()
    await shell.controller.start()
    epoch = (await shell.ask(registration(1))).broker_epoch  # type: ignore[attr-defined]
    await shell.ask(BrokerHeartbeatRequest(1, epoch, shell.log.end_offset))
    await shell.ask(CreateTopicsRequest([topic("t")]), 7)
    assert not await shell.controller.snapshot_if_due()
    shell.log.snapshot_wanted = True
    assert await shell.controller.snapshot_if_due()
    shell.controller.stop()
    shell.log.batches = [[(None, b"")] * shell.log.end_offset]  # no longer read

    again = Shell(shell.log)
    await again.controller.start()
    response = await again.ask(CreateTopicsRequest([topic("t")]), 7)
    assert response.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS  # type: ignore[attr-defined]


def test_records_have_no_key() -> None:
    codec = MetadataCodec()
    record = bootstrap_records(LEVELS)[0]
    key, value = codec.encode(record)
    assert key is None
    assert codec.decode(key, value) == record
