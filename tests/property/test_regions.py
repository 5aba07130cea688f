"""Which source serves an offset: the model assigns a source to every single offset."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skylog.diskless.regions import Region, Source, source_of

END = 12
OFFSETS = st.integers(0, END)
REGIONS = st.lists(
    st.tuples(
        st.sampled_from([Source.TIERED, Source.LOCAL]),
        st.one_of(st.none(), st.builds(Region, OFFSETS, OFFSETS)),
    ),
    max_size=4,
)


def painted(regions: list[tuple[Source, Region | None]], tail: int | None) -> list[Source]:
    """The least preferred first, so that preferred ones overwrite it."""
    colours = [Source.WAL] * (END + 1)
    if tail is not None:
        colours[tail] = Source.TAIL
    for source, region in reversed(regions):
        for offset in range(*region) if region is not None else ():
            colours[offset] = source
    return colours


@given(REGIONS, st.one_of(st.none(), OFFSETS))
def test_every_offset_has_the_source_that_is_preferred(
    regions: list[tuple[Source, Region | None]], tail: int | None
) -> None:
    found = [source_of(offset, regions, tail) for offset in range(END + 1)]
    assert found == painted(regions, tail)
    assert source_of(-1, regions, tail) is source_of(END + 1, regions, tail) is Source.WAL


@given(OFFSETS, OFFSETS, OFFSETS)
def test_a_log_up_to_a_boundary_and_objects_from_there_on(
    log_start: int, trimmed: int, boundary: int
) -> None:
    """A partition that became diskless: every offset has exactly one source."""
    local = (Source.LOCAL, Region(max(log_start, trimmed), boundary))
    tiered = (Source.TIERED, Region(log_start, boundary))
    for offset in range(log_start, END + 1):
        source = source_of(offset, (local, tiered))
        if offset >= boundary:
            assert source is Source.WAL
        else:
            assert source is (Source.LOCAL if offset >= trimmed else Source.TIERED)
