"""The controller of one partition: the real decisions, and a metadata log that brokers read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from skylog.controller.image.topics import NO_LEADER, RECOVERED, Partition
from skylog.controller.partition_change import Election, PartitionChange, PartitionRules
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import ZERO_UUID
from skylog.replication.leader import IsrAnswer, IsrChange, Membership


@dataclass(frozen=True, slots=True)
class Metadata:
    """One version of the metadata."""

    partition: Partition
    brokers: dict[int, Membership]
    # Whether this version's leader was elected uncleanly.
    unclean: bool = False


class SimController:
    """It never fails and forgets nothing: replication is under test, not the controller."""

    def __init__(self, replicas: list[int], min_isr: int, *, unclean: bool, elr: bool) -> None:
        first = Partition(
            replicas=tuple(replicas),
            directories=(ZERO_UUID,) * len(replicas),
            isr=tuple(replicas),
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
        )
        self._unclean = unclean
        self._elr = elr
        self._min_isr = min_isr
        self._next_epoch = 1
        self.brokers: dict[int, Membership] = {}
        self.heard_ms: dict[int, int] = {}
        self.registered_at: dict[int, int] = {}
        self._lives: dict[int, int] = {}
        self.history = [Metadata(first, {})]

    @property
    def partition(self) -> Partition:
        return self.history[-1].partition

    def _publish(self, partition: Partition, *, unclean: bool = False) -> None:
        self.history.append(Metadata(partition, dict(self.brokers), unclean))

    def _change(self, election: Election = Election.ONLINE) -> PartitionChange:
        rules = PartitionRules(
            may_lead=lambda broker: broker in self.brokers and self.brokers[broker].active,
            min_isr=min(self._min_isr, len(self.partition.replicas)),
            elr_enabled=self._elr,
            default_directory=lambda _: ZERO_UUID,
        )
        change = PartitionChange(self.partition, ZERO_UUID, 0, rules)
        change.election = Election.UNCLEAN if self._unclean else election
        return change

    def _apply(self, change: PartitionChange, *, publish: bool = False) -> None:
        before = self.partition
        fit = {*before.isr, *before.elr, *change.isr}
        record = change.build()
        after = before if record is None else before.merge(record)
        led = after.leader not in (before.leader, NO_LEADER)
        if record is not None or publish:
            self._publish(after, unclean=led and after.leader not in fit)

    # -- brokers -------------------------------------------------------------------------------

    def admit(self, broker: int) -> int:
        """Add a broker that exists from the beginning."""
        self.brokers[broker] = Membership(self._next_epoch, active=True)
        self.heard_ms[broker] = self.registered_at[broker] = 0
        self._next_epoch += 1
        self._publish(self.partition)
        return self.brokers[broker].broker_epoch

    def register(self, broker: int, life: int, now_ms: int) -> int:
        """A broker after an unclean shutdown may lack records: it must catch up again.

        A retry in the same life gets the same response.
        """
        if self._lives.get(broker) == life:
            return self.brokers[broker].broker_epoch
        self._lives[broker] = life
        epoch = self._next_epoch
        self._next_epoch += 1
        self.brokers[broker] = Membership(epoch, active=False)
        self.heard_ms[broker] = now_ms
        change = self._change()
        change.unclean_shutdown = broker
        change.isr = [each for each in change.isr if each != broker]
        change.elr = [each for each in change.elr if each != broker]
        self._apply(change, publish=True)
        self.registered_at[broker] = len(self.history) - 1
        return epoch

    def heartbeat(self, broker: int, epoch: int, seen: int, now_ms: int) -> None:
        known = self.brokers.get(broker)
        if known is None or known.broker_epoch != epoch:
            return
        self.heard_ms[broker] = now_ms
        if not known.active and seen >= self.registered_at[broker]:
            self.brokers[broker] = replace(known, active=True)
            self._apply(self._change(), publish=True)

    def expire(self, now_ms: int, session_ms: int) -> None:
        for broker, known in tuple(self.brokers.items()):
            if known.active and now_ms - self.heard_ms[broker] > session_ms:
                self.fence(broker)

    def fence(self, broker: int) -> None:
        """Fence a broker until its next heartbeat."""
        known = self.brokers[broker]
        if known.active:
            self.brokers[broker] = replace(known, active=False)
            change = self._change()
            change.isr = [each for each in change.isr if each != broker]
            self._apply(change, publish=True)

    # -- the partition -------------------------------------------------------------------------

    def alter_partition(self, broker: int, epoch: int, asked: IsrChange) -> IsrAnswer | ErrorCode:
        known, now = self.brokers.get(broker), self.partition
        if known is None or known.broker_epoch != epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if asked.leader_epoch < now.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if broker != now.leader:
            return ErrorCode.INVALID_REQUEST
        if asked.partition_epoch < now.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        members = [member for member, _ in asked.isr]
        if now.leader not in members or not set(members) <= set(now.replicas):
            return ErrorCode.INVALID_REQUEST
        for member, member_epoch in asked.isr:
            of = self.brokers.get(member)
            if of is None or not of.active or member_epoch not in (-1, of.broker_epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        change = self._change()
        change.isr = members
        change.leader_recovery_state = RECOVERED
        self._apply(change)
        after = self.partition
        if after.leader != broker:
            return ErrorCode.NEW_LEADER_ELECTED
        return IsrAnswer(after.leader_epoch, after.partition_epoch, after.isr)

    def elect_preferred(self) -> None:
        self._apply(self._change(Election.PREFERRED))

    def reassign(self, target: list[int]) -> None:
        now = self.partition
        if now.reassigning:
            return
        current = set(now.replicas)
        removing = sorted(current - set(target))
        change = self._change()
        change.replicas = [*target, *removing]
        change.removing, change.adding = removing, sorted(set(target) - current)
        self._apply(change)
