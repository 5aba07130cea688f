"""Leaders, zombies, DeleteRecords, retention and the pruner, in any order: nothing is lost."""

from __future__ import annotations

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.consolidation_world import History


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([-1, 0, 1000, 3000]))
@example(5215, 300)  # DELETE_FINISHED was repeated after a late COPY_STARTED
def test_every_offset_is_readable_at_every_moment(seed: int, retention_bytes: int) -> None:
    asyncio.run(History(seed, retention_bytes=retention_bytes).run())
