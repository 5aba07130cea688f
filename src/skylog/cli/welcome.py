"""What a new user sees when the node is up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skylog.cli.options import BOOTSTRAP_DEFAULT

DEMO_TOPIC = "demo"

if TYPE_CHECKING:
    from skylog.broker.assembly.wiring import Node


def command_name(called: str) -> str:
    """What to type for ``skylog``: the bare name if the shell finds this one, else its path."""
    path = Path(called)
    if path.name != "skylog":
        return "skylog"
    found = shutil.which("skylog")
    return "skylog" if found and Path(found).resolve() == path.resolve() else str(path)


def welcome(node: Node) -> None:
    """Print where the node listens and what to try next."""
    address = node.address()
    lines = [f"skylog is up at {address}; data in {', '.join(node.settings.node.log_dirs)}"]
    if node.http_port:
        lines.append(f"metrics and health: http://{node.http_address}/metrics, /health")
    skylog = command_name(sys.argv[0])
    where = "" if address == BOOTSTRAP_DEFAULT else f" --bootstrap {address}"
    lines += ["", "Try, in another terminal:"]
    if node.has_topic(DEMO_TOPIC):
        topic, show = DEMO_TOPIC, f"  find {node.objects_directory} -type f  # its files"
    else:
        topic, show = "hello", f"  {skylog} topics describe hello{where}"
        lines.append(f"  {skylog} topics create hello --partitions 3{where}")
    lines += [
        f"  echo 'hello, log' | {skylog} produce {topic}{where}",
        f"  {skylog} consume {topic} --from-beginning{where}",
        show,
        *(_tiered(skylog, where) if node.settings.tiered.enabled else ()),
        f"or any Kafka client with bootstrap.servers={address}. Ctrl-C stops the node.",
        "",
    ]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


def _tiered(skylog: str, where: str) -> list[str]:
    """A topic whose old segments go to the object store within seconds."""
    settings = "remote.storage.enable=true segment.bytes=1048576 local.retention.bytes=1048576"
    configs = "".join(f" --config {setting}" for setting in settings.split())
    return [
        "and a topic of which only the newest segments stay on disk:",
        f"  {skylog} topics create clicks{configs}{where}",
        f"  {skylog} perf produce clicks --records 20000 --size 1024{where}",
        f"  {skylog} tiered regions clicks{where}",
    ]
