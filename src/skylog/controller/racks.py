"""Placement of diskless replicas: one in every rack, on the least loaded broker.

Their data is shared, so a replica is an address and a possible leader, not a copy. A broker
without a rack belongs to the rack ``unknown``. Pure: reads nothing but its arguments.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

UNKNOWN_RACK: Final = "unknown"


def rack_name(rack: str | None) -> str:
    return rack or UNKNOWN_RACK


def rack_aware(racks: Sequence[str]) -> bool:
    """Whether no two replicas share a rack."""
    return len(set(racks)) == len(racks)


@dataclass(frozen=True, slots=True)
class RackBroker:
    """A registered broker that can hold replicas."""

    broker_id: int
    rack: str
    # Whether it may lead and be in sync.
    active: bool
    # Whether it takes new partitions; otherwise it is used only if its rack has no other.
    willing: bool = True


class RackPlacer:
    """Chooses brokers and counts its assignments: one placer serves one request."""

    def __init__(
        self,
        brokers: Iterable[RackBroker],
        replica_counts: Mapping[int, int],
        leader_counts: Mapping[int, int],
    ) -> None:
        self._replicas = Counter(replica_counts)
        self._leaders = Counter(leader_counts)
        self._by_id = {broker.broker_id: broker for broker in brokers}
        self._racks: dict[str, list[RackBroker]] = {}
        for broker in self._by_id.values():
            self._racks.setdefault(broker.rack, []).append(broker)
        self._names = sorted(self._racks)
        # The brokers of each rack by preference, as of the last lookup.
        self._heaps = {
            rack: sorted(map(self._preference, members)) for rack, members in self._racks.items()
        }
        self._turn = self._first_turn()

    @property
    def rack_count(self) -> int:
        return len(self._names)

    @property
    def has_active(self) -> bool:
        return any(broker.active for broker in self._by_id.values())

    def one_per_rack(self, keep: Iterable[int] = ()) -> list[int]:
        """A replica in each rack; the first rack rotates from partition to partition.

        A broker in ``keep`` stays if it is the first of its rack.
        """
        kept: dict[str, RackBroker] = {}
        for broker_id in keep:
            broker = self._by_id[broker_id]
            kept.setdefault(broker.rack, broker)
        turn, self._turn = self._turn, self._turn + 1
        chosen = []
        for step in range(len(self._names)):
            rack = self._names[(turn + step) % len(self._names)]
            chosen.append(kept.get(rack) or self._least_loaded(rack))
        for broker in chosen:
            self._replicas[broker.broker_id] += broker not in kept.values()
        leader = next((broker for broker in chosen if broker.active), None)
        if leader is not None:
            self._leaders[leader.broker_id] += 1
        return [broker.broker_id for broker in chosen]

    def replacement(
        self, gone: int, replicas: Collection[int], *, in_rack: bool = False
    ) -> int | None:
        """An active broker to replace ``gone``, one of ``replicas``; None if there is none.

        In the same rack if possible (``in_rack``: only there), else in one that has no replica
        yet, else anywhere.
        """
        rack = self._by_id[gone].rack
        used = {self._by_id[replica].rack for replica in replicas if replica != gone}
        candidates = [
            broker
            for broker in self._by_id.values()
            if broker.active
            and broker.broker_id not in replicas
            and not (in_rack and broker.rack != rack)
        ]
        if not candidates:
            return None
        chosen = min(
            candidates,
            key=lambda broker: (
                broker.rack != rack,
                broker.rack in used,
                *self._preference(broker),
            ),
        )
        self._replicas[chosen.broker_id] += 1
        return chosen.broker_id

    def _least_loaded(self, rack: str) -> RackBroker:
        """Loads only grow, so an unchanged broker at the top of the heap is the least loaded."""
        heap = self._heaps[rack]
        while True:
            broker = self._by_id[heap[0][-1]]
            preference = self._preference(broker)
            if heap[0] == preference:
                return broker
            heapq.heapreplace(heap, preference)

    def _preference(self, broker: RackBroker) -> tuple[bool, bool, int, int, int]:
        broker_id = broker.broker_id
        return (
            not broker.active,
            not broker.willing,
            self._replicas[broker_id],
            self._leaders[broker_id],
            broker_id,
        )

    def _first_turn(self) -> int:
        """The rack with the fewest leaders comes first, so that single-partition topics spread
        too."""

        def leaders(index: int) -> tuple[bool, int]:
            brokers = self._racks[self._names[index]]
            led = sum(self._leaders[broker.broker_id] for broker in brokers)
            return not any(broker.active for broker in brokers), led

        return min(range(len(self._names)), key=leaders, default=0)
