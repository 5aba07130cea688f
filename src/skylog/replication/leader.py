"""The leader's side of a partition: the ISR, and the high watermark. Pure.

==========  ==================================================================================
ISR         goes to
==========  ==================================================================================
committed   pending: a replica outside it has caught up, or one inside it lags (``propose``)
pending     committed as requested: the controller agrees · as before: it refuses and has
            changed nothing · as in metadata, if that comes first
==========  ==================================================================================

One change is pending at a time. A replica that is being added already counts, and one that is being
removed still counts: together they are the *maximal* ISR. Only what all of it has is committed, up
to the high watermark, which never decreases. With fewer in sync than ``min.insync.replicas`` it
does not advance (KIP-966).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from skylog.kernel.errors import ErrorCode, KafkaError

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
# The controller knows our partition epoch and has changed nothing.
_REFUSED: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
# Our state is out of date, or the change removed us: wait for metadata.
_AWAIT_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


@dataclass(frozen=True, slots=True)
class Membership:
    """What metadata says of a broker: the epoch of its registration, and whether it may join
    ISRs."""

    broker_epoch: int
    # Neither fenced nor shutting down.
    active: bool


Brokers = Callable[[int], Membership | None]


class EpochEnds(Protocol):
    """A leader's log, for divergence checks."""

    @property
    def log_start_offset(self) -> int: ...

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]: ...


def find_divergence(log: EpochEnds, offset: int, last_epoch: int) -> tuple[int, int] | None:
    """Where the leader's log diverges from a follower's; None if it does not.

    A follower that fetches ``offset`` has records up to there, the last of them of ``last_epoch``.
    Returns the latest epoch up to that one which the leader has, and its end.
    """
    if last_epoch == NO_EPOCH:
        return None
    epoch, end_offset = log.epoch_end_offset(last_epoch)
    if epoch == NO_EPOCH or end_offset == NO_OFFSET or offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return (epoch, end_offset) if epoch < last_epoch or end_offset < offset else None


class Follower:
    """What the leader knows of another replica."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "fetched_ms",
        "leader_end_offset",
        "start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.end_offset = NO_OFFSET
        self.start_offset = NO_OFFSET
        # The leader's end offset at this replica's last fetch.
        self.leader_end_offset = NO_OFFSET
        self.fetched_ms = 0
        self.caught_up_ms = 0
        # None until it has fetched from this leader.
        self.broker_epoch: int | None = None

    def reset(self, *, now_ms: int, end_offset: int, new_leader: bool, in_sync: bool) -> None:
        """A new epoch began. A replica out of sync must not hold back the high watermark."""
        self.caught_up_ms = now_ms if in_sync else 0
        if new_leader:
            self.end_offset = self.start_offset = self.leader_end_offset = NO_OFFSET
            self.fetched_ms = 0
            self.broker_epoch = None
        else:
            self.leader_end_offset = end_offset
            self.fetched_ms = self.caught_up_ms

    def fetched(self, offset: int, start_offset: int, end_offset: int, now_ms: int) -> None:
        """It fetches ``offset``, so it has everything before; the leader's log ends at
        ``end_offset``.

        A follower that reaches the log end of its previous fetch was caught up then: a follower of
        a busy leader never fetches the very end.
        """
        if offset >= end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.start_offset = start_offset
        self.leader_end_offset = max(self.leader_end_offset, end_offset)
        self.fetched_ms = now_ms

    def is_caught_up(self, end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.end_offset == end_offset or now_ms - self.caught_up_ms <= lag_ms_max


@dataclass(frozen=True, slots=True)
class IsrChange:
    """A proposal to the controller."""

    leader_epoch: int
    partition_epoch: int
    # Each broker with the epoch in which it fetched; -1 if it has not yet.
    isr: tuple[tuple[int, int], ...]
    added: int | None = None
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """The controller's response."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class Leader:
    """One partition that this broker leads together with others."""

    __slots__ = (
        "_brokers",
        "_lag_ms_max",
        "_node_id",
        "epoch_start_offset",
        "followers",
        "isr",
        "leader_epoch",
        "maximal_isr",
        "partition_epoch",
        "pending",
    )

    def __init__(self, node_id: int, lag_ms_max: int, brokers: Brokers) -> None:
        self._node_id = node_id
        self._lag_ms_max = lag_ms_max
        self._brokers = brokers
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        # The start of this leader's epoch: other leaders wrote everything below it.
        self.epoch_start_offset = 0
        self.followers: dict[int, Follower] = {}
        self.isr: frozenset[int] = frozenset()
        self.maximal_isr: frozenset[int] = frozenset()
        self.pending: IsrChange | None = None

    def lead(
        self,
        epochs: tuple[int, int],
        replicas: Sequence[int],
        isr: Sequence[int],
        end_offset: int,
        now_ms: int,
    ) -> None:
        """Apply metadata: (leader epoch, partition epoch), replicas and ISR."""
        leader_epoch, partition_epoch = epochs
        new_leader = self.leader_epoch == NO_EPOCH
        others = [replica for replica in replicas if replica != self._node_id]
        self.followers = {each: self.followers.get(each) or Follower(each) for each in others}
        if epochs != (self.leader_epoch, self.partition_epoch):
            # Otherwise the controller's response has already arrived, and our later request is
            # still pending.
            self._commit_isr(isr)
        self.partition_epoch = partition_epoch
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.epoch_start_offset = end_offset
            for each in self.followers.values():
                each.reset(
                    now_ms=now_ms,
                    end_offset=end_offset,
                    new_leader=new_leader,
                    in_sync=each.broker_id in self.isr,
                )

    def _commit_isr(self, isr: Sequence[int]) -> None:
        self.isr = self.maximal_isr = frozenset(isr)
        self.pending = None

    # -- fetches -------------------------------------------------------------------------------

    def fetched(
        self,
        replica: int,
        offset: int,
        start_offset: int,
        broker_epoch: int,
        end_offset: int,
        now_ms: int,
    ) -> None:
        """A replica fetches ``offset``; NOT_LEADER_OR_FOLLOWER if it has restarted since."""
        follower = self.followers[replica]
        known = self._brokers(replica)
        if broker_epoch != NO_EPOCH and known is not None and known.broker_epoch > broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica} fetches with epoch {broker_epoch}, not {known.broker_epoch}",
            )
        follower.broker_epoch = broker_epoch
        follower.fetched(offset, start_offset, end_offset, now_ms)

    def seen(self, replica: int, fetched_ms: int, end_offset: int) -> None:
        """A replica that has everything has fetched again, in a session, without naming the
        partition."""
        follower = self.followers.get(replica)
        if (
            follower is not None
            and fetched_ms > follower.fetched_ms
            and follower.end_offset >= end_offset
        ):
            follower.fetched(follower.end_offset, follower.start_offset, end_offset, fetched_ms)

    # -- watermarks ----------------------------------------------------------------------------

    def high_watermark(self, current: int, end_offset: int, now_ms: int) -> int:
        """Up to where all of the maximal ISR have the log, but at least ``current``.

        It also waits for a replica that has nearly caught up, which otherwise could never join.
        """
        found = end_offset
        for follower in self.followers.values():
            if follower.end_offset < found and (
                follower.broker_id in self.maximal_isr
                or (
                    follower.is_caught_up(end_offset, now_ms, self._lag_ms_max)
                    and self._may_join(follower)
                )
            ):
                found = follower.end_offset
        return max(found, current)

    def low_watermark(self, start_offset: int) -> int:
        """No live replica has a record below it."""
        found = start_offset
        for follower in self.followers.values():
            known = self._brokers(follower.broker_id)
            if known is not None and known.active:
                found = min(found, follower.start_offset)
        return found

    # -- the ISR -------------------------------------------------------------------------------

    def expansion(self, replica: int, high_watermark: int, broker_epoch: int) -> IsrChange | None:
        """The ISR with a caught-up replica; ``broker_epoch`` is this broker's own.

        The replica must have reached this leader's epoch: earlier records may be committed above
        the high watermark that this leader knows.
        """
        follower = self.followers[replica]
        if (
            self.pending is not None
            or replica in self.isr
            or follower.end_offset < max(high_watermark, self.epoch_start_offset)
            or not self._may_join(follower)
        ):
            return None
        return self._propose(self.isr | {replica}, broker_epoch, added=replica)

    def shrinkage(self, end_offset: int, now_ms: int, broker_epoch: int) -> IsrChange | None:
        """The ISR without lagging replicas."""
        if self.pending is not None:
            return None
        lagging = tuple(
            sorted(
                replica
                for replica in self.isr
                if replica != self._node_id and self._lags(replica, end_offset, now_ms)
            )
        )
        if not lagging:
            return None
        return self._propose(self.isr.difference(lagging), broker_epoch, removed=lagging)

    def _lags(self, replica: int, end_offset: int, now_ms: int) -> bool:
        follower = self.followers.get(replica)
        return follower is None or not follower.is_caught_up(end_offset, now_ms, self._lag_ms_max)

    def _may_join(self, follower: Follower) -> bool:
        known = self._brokers(follower.broker_id)
        return (
            known is not None
            and known.active
            and follower.broker_epoch in (NO_EPOCH, known.broker_epoch)
        )

    def _propose(
        self,
        isr: frozenset[int],
        broker_epoch: int,
        added: int | None = None,
        removed: tuple[int, ...] = (),
    ) -> IsrChange:
        members = tuple((each, self._epoch_of(each, broker_epoch)) for each in sorted(isr))
        change = IsrChange(self.leader_epoch, self.partition_epoch, members, added, removed)
        self.pending = change
        # A replica being removed still counts: the controller may refuse.
        self.maximal_isr = self.isr | isr
        return change

    def _epoch_of(self, replica: int, broker_epoch: int) -> int:
        if replica == self._node_id:
            return broker_epoch
        follower = self.followers.get(replica)
        known = None if follower is None else follower.broker_epoch
        return NO_EPOCH if known is None else known

    def answered(self, change: IsrChange, answer: IsrAnswer | ErrorCode) -> bool:
        """Apply the controller's response; True if the same change must be requested again."""
        if change is not self.pending:
            return False  # metadata has already arrived
        if isinstance(answer, IsrAnswer):
            newer = answer.partition_epoch >= self.partition_epoch
            if answer.leader_epoch == self.leader_epoch and newer:
                self.partition_epoch = answer.partition_epoch
                self._commit_isr(answer.isr)
            return False
        if answer in _REFUSED:
            self._commit_isr(tuple(self.isr))
            return False
        return answer not in _AWAIT_METADATA
