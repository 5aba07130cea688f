"""What inspection shows, on every plane."""

from __future__ import annotations

from dataclasses import replace

from skylog.diskless.bulk import PinRequest
from skylog.diskless.plane import FileInfo
from tests.contract.support import B0, STRANGER, T0, T1, Scene, batch, check, sent

PLENTY = 1_000


async def _listed(scene: Scene, after: str = "", limit: int = PLENTY) -> list[FileInfo]:
    """Without the owners, which only coordinators have."""
    files = await scene.plane.list_files(after, limit)
    return [replace(file, coordinator_ids=()) for file in files]


@check
async def files_are_listed_by_key(scene: Scene) -> None:
    """Each file once, whichever coordinators have batches in it; a page begins after the last
    one."""
    assert await _listed(scene) == []
    keys = sorted(scene.key() for _ in range(5))
    for key in reversed(keys):
        await scene.commit(batch(), batch(T1), batch(B0), key=key)
    assert [file.object_key for file in await _listed(scene)] == keys
    pages = []
    after = ""
    while page := await _listed(scene, after, 2):
        pages.append([file.object_key for file in page])
        after = page[-1].object_key
    assert pages == [keys[:2], keys[2:4], keys[4:]]
    assert await _listed(scene, keys[1][:-1], 1) == (await _listed(scene))[1:2]


@check
async def a_listed_file_tells_what_is_live(scene: Scene) -> None:
    """Deletions reduce bytes and batches; the file is marked at the time of the last one."""
    key = scene.key()
    committed_ms = scene.now
    await scene.commit(batch(size=100), batch(T1, size=200), batch(B0, size=300), key=key)
    whole = FileInfo(key, 601, committed_ms, 3, 600)
    assert await _listed(scene) == [whole]
    scene.clock.advance(10)
    await scene.plane.delete_records([(*T1, -1)])
    assert await _listed(scene) == [replace(whole, live_batches=2, live_bytes=400)]
    await scene.plane.delete_records([(*T0, -1)])
    scene.clock.advance(10)
    await scene.plane.delete_records([(*B0, -1)])
    free = replace(whole, live_batches=0, live_bytes=0, marked_ms=scene.now)
    assert await _listed(scene) == [free]
    await scene.plane.confirm_deleted(await scene.deletable())
    assert await _listed(scene) == []


@check
async def a_refused_file_is_listed_as_free(scene: Scene) -> None:
    key = scene.key()
    await scene.commit(batch((STRANGER, 0)), key=key)
    assert await _listed(scene) == [FileInfo(key, 101, scene.now, 0, 0, scene.now)]


@check
async def coordinators_report_their_sizes(scene: Scene) -> None:
    """All of them together: a file of two coordinators is counted by both."""
    await scene.commit(batch(), batch(), sent(0))
    await scene.commit(sent(0, to=B0))
    await scene.commit(batch((STRANGER, 0)))
    infos = await scene.plane.describe_coordinators()
    assert {info.pins for info in infos} == {0}
    assert {info.state for info in infos} == {"active"}
    assert sum(info.partitions for info in infos) == 3
    assert sum(info.batches for info in infos) == 4
    assert sum(info.producers for info in infos) == 2
    assert sum(info.live_files for info in infos) == 2
    assert sum(info.free_files for info in infos) == 1
    await scene.plane.delete_records([(*T0, -1), (*B0, -1)])
    infos = await scene.plane.describe_coordinators()
    assert sum(info.batches for info in infos) == 0
    assert sum(info.live_files for info in infos) == 0
    assert sum(info.free_files for info in infos) == 3


@check
async def pins_are_counted(scene: Scene) -> None:
    """Each coordinator counts the pins that it knows."""
    pin = PinRequest(scene.staged(), "w", 0, scene.now + 60_000, (T0, B0))
    assert await scene.plane.pin_files([pin]) == [None]
    assert max(info.pins for info in await scene.plane.describe_coordinators()) == 1
    await scene.plane.release_pins([pin.object_key])
    assert {info.pins for info in await scene.plane.describe_coordinators()} == {0}
