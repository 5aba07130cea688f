"""Produce gateways (KIP-1164): the brokers of each rack that write for a diskless coordinator.

A broker that writes for few coordinators commits a file with few calls. Each coordinator has
``max(1, brokers // coordinators // racks)`` gateways in each rack, and with enough brokers a broker
is the gateway of only one coordinator. With fewer, coordinators that share a broker share their
gateways too: a broker then calls at most as many others as there are racks. A coordinator's own
broker is its gateway in its own rack, and needs no call at all.

Computed from metadata alone, so that all brokers give the same result. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NO_HOST = -1
Gateways = Mapping[str, Sequence[int]]


def gateway_count(brokers: int, coordinators: int, racks: int) -> int:
    """Gateways of one coordinator in one rack."""
    return max(1, brokers // coordinators // racks)


@dataclass(slots=True)
class _Gateway:
    """A broker of a rack, and the coordinators assigned to it so far."""

    broker: int
    groups: int = 0
    coordinators: int = 0


def assign_gateways(racks: Mapping[int, str], hosts: Sequence[int]) -> list[Gateways]:
    """For each coordinator, rack by rack, its gateways.

    ``racks`` has the rack of each live broker, ``hosts`` the broker of each coordinator, or
    ``NO_HOST``.
    """
    by_rack: dict[str, list[_Gateway]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(_Gateway(broker))
    found: list[dict[str, Sequence[int]]] = [{} for _ in hosts]
    if not hosts or not by_rack:
        return list(found)
    wanted = gateway_count(len(racks), len(hosts), len(by_rack))
    saturated = len(racks) >= len(hosts) * len(by_rack)
    groups = [(host, [number]) for number, host in enumerate(hosts)]
    if not saturated:
        groups = _co_located(hosts)
    for rack, brokers in by_rack.items():
        # Coordinators hosted in the rack first: their gateways are fixed before the others are
        # assigned.
        for host, numbers in sorted(groups, key=lambda group: racks.get(group[0]) != rack):
            chosen = _choose(brokers, host, numbers, wanted, prefer_host=not saturated)
            for number in numbers:
                found[number][rack] = chosen
    return list(found)


def _co_located(hosts: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Coordinators by their broker; one without a broker is on its own."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, host in enumerate(hosts):
        groups.setdefault((host, number if host == NO_HOST else 0), []).append(number)
    return [(host, numbers) for (host, _), numbers in groups.items()]


def _choose(
    brokers: list[_Gateway], host: int, numbers: list[int], wanted: int, *, prefer_host: bool
) -> list[int]:
    """The least loaded brokers; the host comes first, or, if there is only one, among equals."""

    def order(gateway: _Gateway) -> tuple[bool, int, int, bool, int]:
        at_home = gateway.broker == host
        return (
            not (at_home and prefer_host),
            gateway.groups,
            gateway.coordinators,
            not at_home,
            gateway.broker,
        )

    chosen = sorted(brokers, key=order)[:wanted]
    for gateway in chosen:
        gateway.groups += 1
        gateway.coordinators += len(numbers)
    return sorted(gateway.broker for gateway in chosen)


def gateways_for(gateways: Gateways, zone: str) -> Sequence[int]:
    """A zone without brokers uses those of all others."""
    return gateways.get(zone) or [broker for rack in sorted(gateways) for broker in gateways[rack]]
