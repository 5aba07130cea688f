"""Local copies of deleted partitions: removed once, and then forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skylog.diskless.local.round import Round
from tests.unit.diskless.engine import TOPIC_ID
from tests.unit.diskless.local_world import PARTITIONS, world
from tests.waiting import eventually


@pytest.fixture
def removals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []
    remove = Round._remove

    async def noted(self: Round, one: Any) -> None:
        done.append(one.place.directory)
        await remove(self, one)

    monkeypatch.setattr(Round, "_remove", noted)
    return done


async def test_what_is_removed_is_removed_once_and_forgotten(
    removals: list[str], tmp_path: Path
) -> None:
    async with world(tmp_path) as local:
        local.start()
        await local.append(*(b"%d" % n for n in range(5)))
        await local.caught_up(5)
        await local.caught_up(0, 1)
        local.partitions.delete_topic(TOPIC_ID)
        await eventually(lambda: not any(tmp_path.iterdir()))
        await eventually(lambda: not local.partitions.waits and not local.partitions._owners)
        assert sorted(removals) == [str(local.path(index)) for index in range(PARTITIONS)]


async def test_a_topic_of_the_same_name_gets_its_own_copy(tmp_path: Path) -> None:
    async with world(tmp_path) as local:
        local.start()
        await local.append(b"a", b"b")
        await local.caught_up(2)
        local.partitions.unhost(TOPIC_ID, 0)
        local.partitions.host("t", TOPIC_ID, 0)
        await local.append(b"c")
        await local.caught_up(3)
        assert (await local.fetch(0)).records
        await eventually(lambda: not local.partitions.waits)
