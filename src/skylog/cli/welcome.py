"""What a new user sees when the node is up."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skylog.broker.wiring import Node


def welcome(node: Node) -> None:
    """Say where the node listens and what to try next."""
    address = node.address()
    lines = [f"skylog is up at {address}; data in {', '.join(node.settings.node.log_dirs)}"]
    if node.http_port:
        lines.append(f"metrics and health: http://{node.http_address}/metrics, /health")
    lines += [
        "",
        "Try, in another terminal:",
        f"  .venv/bin/skylog topics create hello --partitions 3 --bootstrap {address}",
        f"  echo 'hello, log' | .venv/bin/skylog produce hello --bootstrap {address}",
        f"  .venv/bin/skylog consume hello --from-beginning --bootstrap {address}",
        f"or any Kafka client with bootstrap.servers={address}. Ctrl-C stops the node.",
        "",
    ]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()
