"""``skylog version``."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Final

from skylog.cli.command_tree import new_app
from skylog.cli.options import Json
from skylog.cli.output import print_json

# The Kafka version with whose protocol, files and settings we are compatible.
KAFKA_VERSION: Final = "4.3.1"

app = new_app()


def skylog_version() -> str:
    """The installed version; unknown for a source tree that was not installed."""
    try:
        return importlib.metadata.version("skylog")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (not installed)"


def version_line() -> str:
    return (
        f"skylog {skylog_version()}, compatible with Kafka {KAFKA_VERSION} "
        f"(Python {platform.python_version()})"
    )


@app.command()
def version(json: Json = False) -> None:
    """Show the version of skylog and of the Kafka it is compatible with."""
    if json:
        python = platform.python_version()
        print_json({"skylog": skylog_version(), "kafka": KAFKA_VERSION, "python": python})
    else:
        print(version_line())
