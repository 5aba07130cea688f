"""Limits on the number of connections and on the rate of new ones.

Per listener and for the whole broker; a separate inter-broker listener is exempt from the
broker-wide limits, so that clients cannot lock out brokers. Per address: a count
(``max.connections.per.ip``) and a rate (client quotas on ``ip`` entities).
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from skylog.kernel import limits
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ConfigError
from skylog.kernel.rates import INT32_MAX, Rate, throttle_ms


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """``listener.name.<name>.max.connections`` and ``….max.connection.creation.rate``."""

    connections_max: int = INT32_MAX
    rate_max: int = INT32_MAX


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The limits of a broker; the defaults limit nothing."""

    connections_max: int = INT32_MAX
    per_ip_max: int = INT32_MAX
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    rate_max: int = INT32_MAX
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)
    inter_broker_listener: str | None = None
    window_count: int = 11
    window_seconds: int = 1


class ConnectionLimits:
    """Counts connections. Call ``closed`` once for every ``opened``, whatever that returned."""

    def __init__(self, settings: ConnectionSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._total = 0
        self._by_listener = dict.fromkeys(settings.listeners, 0)
        self._by_ip: dict[str, int] = {}
        self._rate = self._new_rate()
        self._listener_rates = {name: self._new_rate() for name in settings.listeners}
        self._ip_rates: OrderedDict[str, Rate] = OrderedDict()
        self._ip_rate_default: float | None = None
        self._ip_rate_overrides: dict[str, float] = {}

    def __len__(self) -> int:
        return self._total

    def update(self, settings: ConnectionSettings) -> None:
        """Apply changed limits; existing connections beyond them stay, new ones are refused."""
        self._settings = settings
        for name in settings.listeners:
            self._by_listener.setdefault(name, 0)
            self._listener_rates.setdefault(name, self._new_rate())

    def update_ip_rate(self, ip: str | None, rate: float | None) -> None:
        """The quota ``connection_creation_rate`` of an address, or (None) of all others."""
        if ip is None:
            self._ip_rate_default = rate
        elif rate is None:
            self._ip_rate_overrides.pop(host_address(ip), None)
        else:
            self._ip_rate_overrides[host_address(ip)] = rate

    def opened(self, listener: str, address: str) -> bool:
        """Count a connection; False if it exceeds a limit and must be closed."""
        host = host_address(address)
        admitted = self._has_slot(listener) and self._ip_has_slot(host) and self._ip_in_rate(host)
        self._total += 1
        self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
        self._by_ip[host] = self._by_ip.get(host, 0) + 1
        if admitted:
            now_ms = self._clock.now_ms()
            self._listener_rate(listener).record(1, now_ms)
            if not self._protected(listener):
                self._rate.record(1, now_ms)
        return admitted

    def accept_delay_ms(self, listener: str) -> int:
        """How long not to read from the last connection, so that the rates fall to their limits;
        at most one window."""
        now_ms = self._clock.now_ms()
        rate = self._listener_rate(listener)
        limits_of = self._settings.listeners.get(listener, ListenerLimits())
        wait_ms = throttle_ms(rate.measure(now_ms), limits_of.rate_max, rate.elapsed_ms(now_ms))
        if not self._protected(listener):
            broker_ms = throttle_ms(
                self._rate.measure(now_ms), self._settings.rate_max, self._rate.elapsed_ms(now_ms)
            )
            wait_ms = max(wait_ms, broker_ms)
        return min(wait_ms, self._settings.window_seconds * 1000)

    def closed(self, listener: str, address: str) -> None:
        """Forget a connection."""
        host = host_address(address)
        self._total -= 1
        self._by_listener[listener] -= 1
        self._by_ip[host] -= 1
        if not self._by_ip[host]:
            del self._by_ip[host]

    def _protected(self, listener: str) -> bool:
        settings = self._settings
        return listener == settings.inter_broker_listener and len(settings.listeners) > 1

    def _has_slot(self, listener: str) -> bool:
        own = self._settings.listeners.get(listener, ListenerLimits())
        if self._by_listener.get(listener, 0) >= own.connections_max:
            return False
        return self._protected(listener) or self._total < self._settings.connections_max

    def _ip_has_slot(self, host: str) -> bool:
        maximum = self._settings.per_ip_overrides.get(host, self._settings.per_ip_max)
        return self._by_ip.get(host, 0) < maximum

    def _ip_in_rate(self, host: str) -> bool:
        """A connection beyond its address's rate is refused and does not count towards it."""
        quota = self._ip_rate_overrides.get(host, self._ip_rate_default)
        if quota is None:
            return True
        now_ms = self._clock.now_ms()
        rate = self._ip_rates.get(host)
        if rate is None:
            rate = self._ip_rates[host] = self._new_rate()
            if len(self._ip_rates) > limits.CONNECTION_RATE_ADDRESSES_MAX:
                self._ip_rates.popitem(last=False)
        self._ip_rates.move_to_end(host)
        rate.record(1, now_ms)
        if rate.measure(now_ms) <= quota:
            return True
        rate.record(-1, now_ms)
        return False

    def _listener_rate(self, listener: str) -> Rate:
        return self._listener_rates.setdefault(listener, self._new_rate())

    def _new_rate(self) -> Rate:
        return Rate(self._settings.window_count, self._settings.window_seconds * 1000)


def host_address(address: str) -> str:
    """An address in Java's notation, which ACLs and quotas use.

    IPv4 is unchanged, also inside IPv6; IPv6 has eight groups without ``::`` and leading zeros.
    """
    text, percent, zone = address.partition("%")
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = (f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return ":".join(groups) + percent + zone


def parse_ip_overrides(text: str, resolve: Callable[[str], str]) -> dict[str, int]:
    """``max.connections.per.ip.overrides``: ``host:count`` separated by commas.

    ``resolve`` returns the address of a host name; OSError if there is none.
    """
    overrides = {}
    for part in filter(None, map(str.strip, text.split(","))):
        host, _, count = part.rpartition(":")
        if not host or not (count.isascii() and count.isdigit()):
            raise ConfigError(
                f"max.connections.per.ip.overrides has {part!r}; allowed is host:count"
            )
        try:
            overrides[host_address(resolve(host.strip("[]")))] = int(count)
        except OSError as error:
            raise ConfigError(
                f"max.connections.per.ip.overrides names {host!r}, which has no address"
            ) from error
    return overrides
