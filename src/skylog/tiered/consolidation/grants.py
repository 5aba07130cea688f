"""Which segments of a partition a job may assemble, and until when. Pure.

With ``diskless.tiering.assembler=external`` the leader of a partition assembles nothing itself. A
job asks it for segments (API 510), puts their objects, and reports them (API 511). A segment goes
through these stages:

=========  ========================================================================================
STARTING   granted; COPY_STARTED is being published. Its lease has begun
OPEN       COPY_STARTED took effect: the job may put its objects
FINISHING  its objects were checked; COPY_FINISHED is being published, and may take effect at any
           moment, so that its lease does not end any more
=========  ========================================================================================

It leaves the table when it is finished or given up: by its job, by a job that takes over, by the
end of its lease, or because what was put is not what the WAL has. Whatever is behind a segment that
is given up could never join what is covered, and is given up with it.

*One leader epoch*: a table is good for one epoch of its leader, and is replaced with it. What was
granted before is then a copy of an older epoch, which is cleaned as such.
*One run*: segments are granted and finished in the order of their offsets, without gap or overlap,
from the end of what is covered on. That keeps two jobs, or a job and a leader, from both counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID

if TYPE_CHECKING:
    from skylog.kernel.ids import Uuid
    from skylog.tiered.segments import RemoteSegment

SampleT = TypeVar("SampleT")


class Asked(NamedTuple):
    """A segment that a job asks for; ``end_offset`` is inclusive."""

    id: Uuid
    start_offset: int
    end_offset: int


class GrantStage(Enum):
    STARTING = "starting"
    OPEN = "open"
    FINISHING = "finishing"


@dataclass(slots=True)
class Grant(Generic[SampleT]):
    """``start_offset`` is what was asked for; the segment begins with the batch that has it."""

    job: Uuid
    start_offset: int
    segment: RemoteSegment
    # On the monotonic clock.
    ends_at: float
    # Some of its batches, to be compared with what is put.
    samples: Sequence[SampleT] = ()
    stage: GrantStage = GrantStage.STARTING

    @property
    def next_offset(self) -> int:
        return self.segment.end_offset + 1


@dataclass(slots=True)
class Grants(Generic[SampleT]):
    """Those of one partition in one leader epoch, in the order of their offsets."""

    leader_epoch: int
    open_max: int
    lease_seconds: float
    _open: dict[Uuid, Grant[SampleT]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._open)

    def get(self, segment_id: Uuid) -> Grant[SampleT] | None:
        return self._open.get(segment_id)

    def next_offset(self, covered_end: int) -> int:
        """Where the next segment begins: behind what is granted, or else behind what is covered."""
        ends = [grant.next_offset for grant in self._open.values()]
        return max(covered_end, *ends) if ends else covered_end

    # -- asking ----------------------------------------------------------------------------------

    def others(self, job: Uuid) -> list[Grant[SampleT]]:
        """What another job assembles."""
        return [grant for grant in self._open.values() if grant.job != job]

    def repeated(self, job: Uuid, asked: Sequence[Asked]) -> list[Grant[SampleT]] | None:
        """The grants of a request that was made before, whose answer was lost; None if this is
        another one. INVALID_REQUEST if it is only partly the same."""
        known = [self._open.get(one.id) for one in asked]
        same = [
            grant
            for grant, one in zip(known, asked, strict=True)
            if grant is not None and grant.job == job and _is_same(grant, one)
        ]
        if asked and len(same) == len(asked):
            return same
        if any(grant is not None for grant in known):
            raise _refused("the id of a segment is in use")
        return None

    def check(self, job: Uuid, asked: Sequence[Asked], covered_end: int, now: float) -> None:
        """Whether a run may be granted; INVALID_REQUEST says what is wrong with it."""
        others = self.others(job)
        if others:
            left = max(grant.ends_at for grant in others) - now
            raise _refused(
                f"another job assembles offsets {others[0].start_offset} to"
                f" {others[-1].next_offset - 1}: it has {max(round(left), 1)} s left, unless it"
                " is taken over"
            )
        if len(self._open) + len(asked) > self.open_max:
            raise _refused(
                f"{len(self._open)} segments are being assembled, and {len(asked)} more are asked"
                f" for; {self.open_max} at a time are allowed"
            )
        expected = self.next_offset(covered_end)
        for one in asked:
            if one.start_offset != expected:
                how = "overlaps what is there" if one.start_offset < expected else "leaves a gap"
                raise _refused(
                    f"a segment that begins at {one.start_offset} {how}: the next one begins at"
                    f" {expected}"
                )
            if one.end_offset < one.start_offset:
                raise _refused(f"a segment from {one.start_offset} to {one.end_offset}")
            expected = one.end_offset + 1
        if len({one.id for one in asked}) < len(asked):
            raise _refused("two segments with one id")
        if any(one.id == ZERO_UUID for one in asked):
            raise _refused("a segment without an id")

    def grant(
        self,
        job: Uuid,
        asked: Asked,
        segment: RemoteSegment,
        samples: Sequence[SampleT],
        now: float,
    ) -> Grant[SampleT]:
        """Note a segment that was checked."""
        grant = Grant(job, asked.start_offset, segment, now + self.lease_seconds, samples)
        self._open[segment.id] = grant
        return grant

    # -- leaving ---------------------------------------------------------------------------------

    def granted(self, segment_id: Uuid, job: Uuid) -> Grant[SampleT]:
        """A segment whose objects may be checked; RESOURCE_NOT_FOUND if it is not granted (any
        more), INVALID_REQUEST if it has not begun."""
        grant = self._open.get(segment_id)
        if grant is None or grant.job != job:
            raise gone(segment_id)
        if grant.stage is GrantStage.STARTING:
            raise _refused(f"segment {segment_id} is not started yet")
        return grant

    def finish(self, grant: Grant[SampleT], covered_end: int, log_start_offset: int) -> None:
        """From now on it may be finished; INVALID_REQUEST if it is not its turn, or if somebody
        else has finished what it begins with. What was deleted of it does not matter."""
        segment = grant.segment
        if self._open.get(segment.id) is not grant:
            raise gone(segment.id)
        if grant.start_offset > covered_end:
            raise _refused(
                f"segment {segment.id} begins at {grant.start_offset}, and what is finished ends"
                f" at {covered_end}: the ones before it are to be finished first"
            )
        is_deleted = grant.next_offset <= log_start_offset
        if is_deleted or covered_end > max(grant.start_offset, log_start_offset):
            raise _refused(
                f"offsets of segment {segment.id} are finished or deleted already: the next one"
                f" begins at {covered_end}"
            )
        grant.stage = GrantStage.FINISHING

    def ended(self, segment_id: Uuid) -> None:
        """It is finished, or another broker leads."""
        self._open.pop(segment_id, None)

    def give_up(self, segment_id: Uuid) -> list[Grant[SampleT]]:
        """Take back a segment and all behind it; those that are being finished stay."""
        first = self._open.get(segment_id)
        if first is None:
            return []
        return self._take(
            [grant for grant in self._open.values() if grant.start_offset >= first.start_offset]
        )

    def take_over(self, job: Uuid) -> list[Grant[SampleT]]:
        """Take back what other jobs have."""
        return self._take(self.others(job))

    def take_all(self) -> list[Grant[SampleT]]:
        return self._take(list(self._open.values()))

    def expired(self, now: float) -> list[Grant[SampleT]]:
        """Take back the segments whose leases have ended."""
        late = [
            grant
            for grant in self._open.values()
            if grant.ends_at <= now and grant.stage is not GrantStage.FINISHING
        ]
        return self.give_up(late[0].segment.id) if late else []

    @property
    def next_end(self) -> float | None:
        """When the next lease ends."""
        return min(
            (
                grant.ends_at
                for grant in self._open.values()
                if grant.stage is not GrantStage.FINISHING
            ),
            default=None,
        )

    def _take(self, grants: Sequence[Grant[SampleT]]) -> list[Grant[SampleT]]:
        taken = [grant for grant in grants if grant.stage is not GrantStage.FINISHING]
        for grant in taken:
            del self._open[grant.segment.id]
        return taken


def gone(segment_id: Uuid) -> KafkaError:
    return KafkaError(
        ErrorCode.RESOURCE_NOT_FOUND,
        f"segment {segment_id} is not granted here: its lease has ended, another job has taken"
        " over, or the leader has changed",
    )


def _is_same(grant: Grant[SampleT], asked: Asked) -> bool:
    end_offset = grant.segment.end_offset
    return (grant.start_offset, end_offset) == (asked.start_offset, asked.end_offset)


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
