"""A replicated machine on the metadata log: acknowledged writes survive, snapshots are complete."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import KafkaError
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.retention import Retention
from skylog.replicated.digest import state_digest
from skylog.replicated.lifecycle import CONTROLLER_REFUSALS, State
from skylog.replicated.runtime import MachineKind, Runtime
from tests.unit.quorum.support import CrashFiles, Rig, started
from tests.unit.replicated.support import Add, IntCodec, ManualTimers, Read, Register

KIND: MachineKind[Any] = MachineKind("register", Register, IntCodec(), CONTROLLER_REFUSALS)


async def load(rig: Rig) -> Runtime[Any]:
    runtime: Runtime[Any] = Runtime(
        KIND, rig.node, rig.clock, ManualTimers(rig.clock), rig.failures.append
    )
    await runtime.load()
    return runtime


def digest(runtime: Runtime[Any]) -> str:
    assert runtime.machine is not None
    return state_digest(runtime.machine, IntCodec())


async def test_requests_pipeline_and_survive_a_restart(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    runtime = await load(rig)
    replies = await asyncio.gather(*(runtime.submit(Add(amount, 3)) for amount in range(1, 51)))
    assert replies[-1] == sum(range(51))
    before = digest(runtime)
    rig = await started(tmp_path)
    assert digest(await load(rig)) == before


async def test_what_was_not_answered_may_be_lost_and_no_more(tmp_path: Path) -> None:
    files = CrashFiles()
    rig = await started(tmp_path, files=files)
    runtime = await load(rig)
    assert await runtime.submit(Add(1)) == 1
    unanswered = asyncio.ensure_future(runtime.submit(Add(2)))
    # It is handled in the next turn; the sync that it starts comes after that.
    files.fails.add("sync")
    await asyncio.sleep(0)
    assert rig.node.end_offset == 5
    await rig.settle()
    assert not unanswered.done()
    files.power_cut(rig.storage.metadata_log)
    runtime.unload()
    with pytest.raises(KafkaError) as raised:
        await unanswered
    assert raised.value.ambiguous
    assert await (await load(await started(tmp_path))).submit(Read()) == (1, 0)


async def test_a_snapshot_replaces_the_log_before_it(tmp_path: Path) -> None:
    config = MetadataLogConfig(
        segment_bytes=300, snapshot_after_bytes=600, retention=Retention(400, -1)
    )
    rig = await started(tmp_path, config=config)
    runtime = await load(rig)
    written = 0
    for amount in range(40):
        await runtime.submit(Add(amount, 2))
        written += await runtime.snapshot_if_due()
    assert written > 2
    assert len(list(rig.storage.metadata_log.glob("*.log"))) < 5
    before = digest(runtime)
    rig = await started(tmp_path, config=config)
    assert digest(await load(rig)) == before


async def test_a_runtime_on_a_closed_node_is_told(tmp_path: Path) -> None:
    rig = await started(tmp_path)
    runtime = await load(rig)
    await rig.node.close()
    with pytest.raises(KafkaError):
        await runtime.submit(Add(1))
    assert runtime.state is State.UNLOADED
