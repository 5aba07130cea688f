"""A network for the nodes of a cluster whose links can be cut: a namespace for each. Needs root.

Clients stay outside and always reach every node.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from typing import Self

from skylog.cli.local_cluster import LocalCluster, LocalNode

_CLIENTS = 254


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """One bridge and a namespace for each node; names and addresses are unique to this run."""

    def __init__(self, count: int) -> None:
        number = os.getpid()
        self._bridge = f"sk{number}"
        self._subnet = f"10.{128 + number % 64}.{number // 64 % 256}"
        self._count = count
        self.hosts = tuple(f"{self._subnet}.{index + 1}" for index in range(count))

    def __enter__(self) -> Self:
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("address", "add", f"{self._subnet}.{_CLIENTS}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for index, host in enumerate(self.hosts):
                self._join(f"{self._bridge}-{index}", host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _join(self, name: str, host: str) -> None:
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", name, "master", self._bridge, "up")
        _ip("-n", name, "address", "add", f"{host}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")

    def __exit__(self, *_: object) -> None:
        for index in range(self._count):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", f"{self._bridge}-{index}")
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "delete", self._bridge)

    def namespace(self, host: str) -> str:
        return f"{self._bridge}-{self.hosts.index(host)}"

    def cut(self, some: Sequence[str], others: Sequence[str]) -> None:
        """Drop all packets between the two groups of nodes."""
        for host in some:
            for other in others:
                _ip("-n", self.namespace(host), "route", "add", "blackhole", f"{other}/32")

    def heal(self) -> None:
        for host in self.hosts:
            _ip("-n", self.namespace(host), "route", "flush", "type", "blackhole")


class NetworkedCluster(LocalCluster):
    """Runs each node in its namespace."""

    network: Network

    def command(self, node: LocalNode) -> list[str]:
        return ["ip", "netns", "exec", self.network.namespace(node.host), *super().command(node)]
