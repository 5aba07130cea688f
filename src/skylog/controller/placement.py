"""Where new replicas go: Kafka's striped placement.

Leaders rotate through the racks and, within a rack, through its brokers, from random starting
points; the replicas of one partition are spread over as many racks as possible; fenced brokers come
last and never lead. After as many partitions as there are unfenced brokers everything is shuffled,
so that the same pairs of brokers do not share all their partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skylog.controller.draws import Draws
from skylog.kernel.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that takes new replicas."""

    broker_id: int
    rack: str | None
    fenced: bool


def place(
    brokers: Iterable[UsableBroker], partitions: int, replicas: int, draws: Draws
) -> list[list[int]]:
    """Replicas for each of ``partitions``; INVALID_REPLICATION_FACTOR if it is impossible."""
    racks = _Racks(brokers, draws)
    if replicas <= 0:
        raise _refusal(f"Invalid replication factor {replicas}: it must be positive.")
    if racks.unfenced_count == 0:
        raise _refusal(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replicas > racks.total_count:
        raise _refusal(
            f"A replication factor of {replicas} cannot be reached: only {racks.total_count} "
            "broker(s) are registered and take partitions."
        )
    return [racks.next_replicas(replicas) for _ in range(partitions)]


def _refusal(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, why)


class _Ring:
    """Brokers that are used once per round; each round starts one further."""

    def __init__(self, brokers: list[int], draws: Draws) -> None:
        self._brokers = sorted(brokers)
        self._start = draws.randrange(len(brokers)) if brokers else 0
        self._taken = 0
        self._round = 0

    def shuffle(self, draws: Draws) -> None:
        draws.shuffle(self._brokers)

    def next(self, round_: int) -> int | None:
        if not self._brokers:
            return None
        if self._round != round_:
            self._round = round_
            self._taken = 0
            self._start = (self._start + 1) % len(self._brokers)
        if self._taken >= len(self._brokers):
            return None
        broker = self._brokers[(self._taken + self._start) % len(self._brokers)]
        self._taken += 1
        return broker


class _Rack:
    def __init__(self, brokers: list[UsableBroker], draws: Draws) -> None:
        self.fenced = _Ring([found.broker_id for found in brokers if found.fenced], draws)
        self.unfenced = _Ring([found.broker_id for found in brokers if not found.fenced], draws)

    def next(self, round_: int) -> int | None:
        found = self.unfenced.next(round_)
        return self.fenced.next(round_) if found is None else found

    def shuffle(self, draws: Draws) -> None:
        self.fenced.shuffle(draws)
        self.unfenced.shuffle(draws)


class _Racks:
    """All racks, sorted by name, brokers without a rack first."""

    def __init__(self, brokers: Iterable[UsableBroker], draws: Draws) -> None:
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_rack[name], draws) for name in names]
        self._draws = draws
        self._round = 0
        self._start = draws.randrange(len(names)) if names else 0
        self.total_count = sum(len(found) for found in by_rack.values())
        self.unfenced_count = sum(
            not broker.fenced for found in by_rack.values() for broker in found
        )

    def next_replicas(self, count: int) -> list[int]:
        # A single broker needs no shuffle, and its ring would never start a new round.
        if self._round == self.unfenced_count and self.unfenced_count > 1:
            self._shuffle()
            self._round = 0
        if self._start == len(self._racks):
            self._start = 0
        leader, leader_rack = self._next_leader()
        replicas = [leader]
        index = self._start
        skipped = False
        while len(replicas) < count:
            # The leader's rack is skipped once: the second replica goes to another one.
            if index == leader_rack and not skipped:
                skipped = True
            else:
                found = self._racks[index].next(self._round)
                if found is not None:
                    replicas.append(found)
            index = (index + 1) % len(self._racks)
        self._round += 1
        self._start += 1
        return replicas

    def _next_leader(self) -> tuple[int, int]:
        """Some rack has an unfenced broker: ``place`` has checked."""
        index = self._start
        while True:
            found = self._racks[index].unfenced.next(self._round)
            if found is not None:
                return found, index
            index = (index + 1) % len(self._racks)

    def _shuffle(self) -> None:
        self._draws.shuffle(self._racks)
        for rack in self._racks:
            rack.shuffle(self._draws)
