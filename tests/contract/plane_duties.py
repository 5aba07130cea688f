"""What a plane says of itself, and which broker does which of its work."""

from __future__ import annotations

from skylog.diskless.plane import ControlPlane
from tests.contract.support import B0, T0, T1, Scene, batch, check


async def _brokers(scene: Scene) -> list[ControlPlane]:
    """The plane as two brokers have it; one object if it is for one broker."""
    other = await scene.another()
    return [scene.plane] if other is scene.plane else [scene.plane, other]


@check
async def one_broker_does_each_piece_of_work(scene: Scene) -> None:
    brokers = await _brokers(scene)
    for partition in (T0, T1, B0):
        assert sum(plane.owns(partition) for plane in brokers) == 1
    assert sum(plane.is_caretaker() for plane in brokers) == 1
    assert any(plane.owns_files() for plane in brokers)


@check
async def every_broker_that_may_know_a_file_is_reached(scene: Scene) -> None:
    await scene.plane.loaded()
    assert scene.plane.reaches_all()


@check
async def one_broker_lists_all_files(scene: Scene) -> None:
    """Brokers are asked only if they know something of their own; here one knows everything."""
    await scene.commit(batch())
    listed = await scene.plane.list_files("", 10)
    assert len(listed) == 1
    assert scene.plane.other_brokers() == []


@check
async def a_durable_plane_is_the_same_for_all_brokers(scene: Scene) -> None:
    await scene.commit(batch(count=3))
    brokers = await _brokers(scene)
    assert scene.plane.is_durable or len(brokers) == 1
    for plane in brokers:
        (info,) = await plane.log_info([T0])
        assert info.high_watermark == 3
