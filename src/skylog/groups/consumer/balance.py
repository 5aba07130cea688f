"""The uniform assignor for different subscriptions: assign free partitions, then balance."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from skylog.kernel.ids import Uuid

# Overlapping subscriptions may need several rounds; each about halves the imbalance.
_ROUNDS_MAX: Final = 16
Draft = dict[str, list[tuple[Uuid, int]]]


def assign_unequal(
    draft: Draft, topics: Mapping[str, frozenset[Uuid]], counts: Mapping[Uuid, int]
) -> None:
    """Complete and level out a draft that holds what members keep."""
    _Leveller(draft, topics, counts).run()


class _Leveller:
    def __init__(
        self, draft: Draft, topics: Mapping[str, frozenset[Uuid]], counts: Mapping[Uuid, int]
    ) -> None:
        self._draft = draft
        self._sizes = {member_id: len(found) for member_id, found in draft.items()}
        self._counts = counts
        self._subscribers: dict[Uuid, list[str]] = {}
        for member_id in draft:
            for topic_id in topics[member_id]:
                self._subscribers.setdefault(topic_id, []).append(member_id)
        # Who owns what, by topic: member → partitions.
        self._owners: dict[Uuid, dict[str, list[int]]] = {t: {} for t in self._subscribers}
        for member_id, found in draft.items():
            for topic_id, partition in found:
                self._owners[topic_id].setdefault(member_id, []).append(partition)

    def run(self) -> None:
        # Topics with much for few go first: there the choice is smallest.
        order = sorted(
            self._subscribers,
            key=lambda t: (
                -self._counts[t] / len(self._subscribers[t]),
                len(self._subscribers[t]),
                t,
            ),
        )
        for topic_id in order:
            self._spread(topic_id)
        shared = [topic_id for topic_id in order if len(self._subscribers[topic_id]) > 1]
        for _ in range(_ROUNDS_MAX):
            if not sum(self._level(topic_id) for topic_id in shared):
                break
        for member_id in self._draft:
            self._draft[member_id] = [
                (topic_id, partition)
                for topic_id, owners in self._owners.items()
                for partition in owners.get(member_id, ())
            ]

    def _spread(self, topic_id: Uuid) -> None:
        """Give each free partition of a topic to the subscriber that has least."""
        owners = self._owners[topic_id]
        taken = {partition for found in owners.values() for partition in found}
        heap = [(self._sizes[m], m) for m in self._subscribers[topic_id]]
        heapify(heap)
        for partition in range(self._counts[topic_id]):
            if partition not in taken:
                size, member_id = heap[0]
                owners.setdefault(member_id, []).append(partition)
                self._sizes[member_id] = size + 1
                heapreplace(heap, (size + 1, member_id))

    def _level(self, topic_id: Uuid) -> int:
        """Move partitions of a topic from the largest to the smallest owner; returns how many."""
        owners, sizes = self._owners[topic_id], self._sizes
        fullest = [(-sizes[m], m) for m, found in owners.items() if found]
        emptiest = [(sizes[m], m) for m in self._subscribers[topic_id]]
        heapify(fullest)
        heapify(emptiest)
        moved = 0
        while fullest:
            size, giver = heappop(fullest)
            if not owners[giver] or -size != sizes[giver]:
                continue  # stale entry; members that can still give are in the heap again
            least, taker = emptiest[0]
            if least != sizes[taker]:
                heapreplace(emptiest, (sizes[taker], taker))
                heappush(fullest, (size, giver))
                continue
            if sizes[giver] - least <= 1:
                break
            owners.setdefault(taker, []).append(owners[giver].pop())
            sizes[giver] -= 1
            sizes[taker] += 1
            heappush(fullest, (-sizes[giver], giver))
            heappush(fullest, (-sizes[taker], taker))
            heapreplace(emptiest, (sizes[taker], taker))
            moved += 1
        return moved
