"""A partition's next state: leader, ISR, and eligible leader replicas.

Set the wanted fields of a change, then build it: a finished reassignment is completed, eligible
leaders are computed (KIP-966), a leader is elected, and only differences go into the record.
Without differences there is no record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from skylog.controller.image.topics import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERING,
    Partition,
)
from skylog.kernel.ids import Uuid
from skylog.wire.messages.partition_change_record import PartitionChangeRecord

T = TypeVar("T")


class Election(Enum):
    """How far an election may go."""

    PREFERRED = "the first replica if it is in sync, else any that is"
    ONLINE = "a leader only if the current one cannot continue"
    UNCLEAN = "an out-of-sync replica, rather than none"


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """What a change must know about the cluster."""

    # Whether a broker may lead this partition: active, and its directory is online.
    may_lead: Callable[[int], bool]
    min_isr: int
    elr_enabled: bool
    default_directory: Callable[[int], Uuid]


@dataclass(slots=True)
class PartitionChange:
    """The change of one partition, under construction."""

    partition: Partition
    topic_id: Uuid
    index: int
    rules: PartitionRules
    election: Election = Election.ONLINE
    unclean_shutdown: int = NO_LEADER
    isr: list[int] = field(init=False)
    replicas: list[int] = field(init=False)
    removing: list[int] = field(init=False)
    adding: list[int] = field(init=False)
    elr: list[int] = field(init=False)
    leader_recovery_state: int = field(init=False)
    directories: dict[int, Uuid] = field(init=False)

    def __post_init__(self) -> None:
        now = self.partition
        self.isr = list(now.isr)
        self.replicas = list(now.replicas)
        self.removing = list(now.removing_replicas)
        self.adding = list(now.adding_replicas)
        self.elr = list(now.elr)
        self.leader_recovery_state = now.leader_recovery_state
        self.directories = dict(zip(now.replicas, now.directories, strict=True))

    def follow_liveness(self) -> None:
        """Every live replica is in sync: all replicas of a diskless partition share its data."""
        alive = [replica for replica in self.replicas if self.rules.may_lead(replica)]
        self.isr = alive or self.isr

    def build(self) -> PartitionChangeRecord | None:
        """The record, or None if nothing would change."""
        now = self.partition
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        self._complete_reassignment()
        self._work_out_elr()
        self._elect(record)
        if record.leader == NO_LEADER_CHANGE and not set(now.replicas) <= set(self.replicas):
            # A replica was removed: a new leader epoch makes sure that it notices.
            record.leader = now.leader
        self._set_elr(record)
        self._set_isr(record)
        self._set_last_known_leader(record)
        self._set_assignment(record)
        if self.leader_recovery_state != now.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        return None if _changes_nothing(record) else record

    def _complete_reassignment(self) -> None:
        """Drop the removed replicas, once the added ones are in sync."""
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if self.removing and not (isr and replicas):
            return
        if not set(self.adding) <= set(isr):
            return
        # Fewer replicas than before: wait for all that stay, so that the ISR does not shrink
        # further.
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return
        self.isr, self.replicas = isr, replicas
        self.removing, self.adding = [], []

    def _work_out_elr(self) -> None:
        """Replicas that left the ISR while it was too small still have all committed records. A
        removed replica does not: it has deleted its log.
        """
        if not self.rules.elr_enabled:
            return
        if len(self.isr) >= self.rules.min_isr:
            self.elr = []
            return
        candidates = dict.fromkeys([*self.elr, *self.partition.isr])
        self.elr = [
            replica
            for replica in candidates
            if replica in self.replicas
            and replica not in self.isr
            and replica != self.unclean_shutdown
        ]

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, unclean = self._elected()
        if leader == self.partition.leader:
            return
        if leader in self.elr:
            self.isr = [leader]
            self.elr = [replica for replica in self.elr if replica != leader]
        record.leader = leader
        if unclean:
            # Records may be lost; the new leader is alone in the ISR until it reports that it has
            # recovered.
            record.isr = [leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _elected(self) -> tuple[int, bool]:
        """The leader, and whether it may lack records."""
        now = self.partition
        if self.election is Election.PREFERRED and self._is_valid(self.replicas[0]):
            return self.replicas[0], False
        if self._is_valid(now.leader):
            return now.leader, False
        for replica in self.replicas:
            if self._is_valid(replica):
                return replica, False
        if self._last_known_leader_can_lead():
            return now.last_known_elr[0], True
        if self.election is Election.UNCLEAN:
            for replica in self.replicas:
                if self.rules.may_lead(replica):
                    return replica, True
        return NO_LEADER, False

    def _is_valid(self, replica: int) -> bool:
        in_sync = replica in self.isr or (not self.isr and replica in self.elr)
        return in_sync and self.rules.may_lead(replica)

    def _last_known_leader_can_lead(self) -> bool:
        """With no in-sync or eligible replica, the last leader is the best choice."""
        known = self.partition.last_known_elr
        return (
            self.rules.elr_enabled
            and not self.elr
            and not self.isr
            and len(known) == 1
            and self.rules.may_lead(known[0])
        )

    def _set_elr(self, record: PartitionChangeRecord) -> None:
        unclean = record.isr is not None
        if unclean or not self.rules.elr_enabled:
            self.elr = []
        record.eligible_leader_replicas = _changed(self.elr, self.partition.elr)

    def _set_isr(self, record: PartitionChangeRecord) -> None:
        """Without eligible leaders the last ISR is kept: it shows which replicas have all
        records."""
        if record.isr is None and (self.isr or self.rules.elr_enabled):
            record.isr = _changed(self.isr, self.partition.isr)

    def _set_last_known_leader(self, record: PartitionChangeRecord) -> None:
        if not self.rules.elr_enabled:
            return
        known = self.partition.last_known_elr
        if record.leader == NO_LEADER and not known:
            record.last_known_elr = [self.partition.leader]
        elif record.leader >= 0 and known:
            record.last_known_elr = []

    def _set_assignment(self, record: PartitionChangeRecord) -> None:
        now = self.partition
        directories = [
            self.directories.get(replica) or self.rules.default_directory(replica)
            for replica in self.replicas
        ]
        record.directories = _changed(directories, now.directories)
        record.replicas = _changed(self.replicas, now.replicas)
        record.removing_replicas = _changed(self.removing, now.removing_replicas)
        record.adding_replicas = _changed(self.adding, now.adding_replicas)


def _changed(wanted: list[T], now: tuple[T, ...]) -> list[T] | None:
    return None if tuple(wanted) == now else wanted


def _changes_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.leader_recovery_state == NO_RECOVERY_CHANGE
        and record.isr is None
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )
