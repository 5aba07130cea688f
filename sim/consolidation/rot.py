"""Objects that a store loses or cuts: what nobody has read back since may not be relied on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.consolidation.bucket import SUFFIXES
from sim.consolidation.requests import at_once
from skylog.objects.keys import ObjectKey
from skylog.tiered.layout.aiven import main_path

if TYPE_CHECKING:
    from sim.consolidation.world import World


def rot(world: World) -> bool:
    """Spoil a finished segment whose records are all in the WAL still; False if there is none.

    A pass that has looked at it already, or is about to, cannot know.
    """
    bucket, log = world.bucket, world.log
    asked = {request.segment_id for request in world.in_flight}
    fresh = [
        one
        for one in world.topic.finished()
        if one.start_offset >= max(log.wal_start_offset, log.log_start_offset)
        and bytes(one.id) not in bucket.looked_at | bucket.rotten | asked
    ]
    if not fresh:
        return False
    segment = world.rng.choice(fresh)
    key = ObjectKey.parse(f"{main_path(segment)}.{world.rng.choice(SUFFIXES)}")
    data = bucket.data(key.text)
    if data is None:
        return False
    at_once(bucket.delete_many([key]))
    if world.rng.random() < 0.5:
        at_once(bucket.put(key, data[:-1]))
    bucket.rotten.add(bytes(segment.id))
    bucket.changes += 1
    return True
