"""Members' metadata stays in memory, so it is limited."""

from __future__ import annotations

import pytest

from skylog.groups import classic, machine
from skylog.groups.requests import Request
from skylog.kernel.errors import ErrorCode
from skylog.kernel.limits import GROUP_MEMBER_METADATA_BYTES_MAX
from tests.unit.groups.support import Bench, join_request

NAME_BYTES = len("range")


def join(bench: Bench, group_id: str, size: int, member_id: str = "") -> ErrorCode:
    """Join at once, as the first versions do; NONE also if the response has to wait."""
    request = join_request(member_id, metadata=bytes(size - NAME_BYTES), group_id=group_id)
    call = bench.run(Request(request, 3, "client", "/host", f"{group_id}-suffix"))
    return call.code if call.answered else ErrorCode.NONE


def test_one_member() -> None:
    bench = Bench()
    assert join(bench, "fits", GROUP_MEMBER_METADATA_BYTES_MAX) is ErrorCode.NONE
    refused = join(bench, "too-much", GROUP_MEMBER_METADATA_BYTES_MAX + 1)
    assert refused is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.machine.group("too-much") is None


def test_all_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "GROUP_METADATA_BYTES_MAX", 1000)
    bench = Bench()
    assert join(bench, "first", 600) is ErrorCode.NONE
    assert join(bench, "second", 401) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert join(bench, "second", 400) is ErrorCode.NONE
    group = bench.machine.group("first")
    assert group is not None
    (member_id,) = group.members
    # A member may rejoin, but not with more metadata.
    assert join(bench, "first", 601, member_id) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert join(bench, "first", 500, member_id) is ErrorCode.NONE
    # What one member frees, another one may use.
    assert join(bench, "third", 100) is ErrorCode.NONE
    assert join(bench, "fourth", NAME_BYTES) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_that_leaves_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "GROUP_METADATA_BYTES_MAX", 1000)
    bench = Bench()
    assert join(bench, "first", 1000) is ErrorCode.NONE
    assert join(bench, "second", NAME_BYTES) is ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.advance(10 * 60_000)  # the member's session has expired
    assert join(bench, "second", 1000) is ErrorCode.NONE


def test_members_that_do_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic, "GROUP_PENDING_MEMBERS_MAX", 2)
    bench = Bench()
    for _ in range(2):
        assert bench.ask(join_request("")).code is ErrorCode.MEMBER_ID_REQUIRED
    assert bench.ask(join_request("")).code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.advance(10 * 60_000)  # their sessions end
    assert bench.ask(join_request("")).code is ErrorCode.MEMBER_ID_REQUIRED
