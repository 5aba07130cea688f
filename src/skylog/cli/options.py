"""Options shared by many commands, and the parsers of their values."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

BOOTSTRAP_DEFAULT: Final = "127.0.0.1:9092"

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="SKYLOG_BOOTSTRAP",
        metavar="HOST:PORT",
        help=f"Brokers to connect to first, separated by commas (default: {BOOTSTRAP_DEFAULT}).",
    ),
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        "-c",
        metavar="FILE",
        help="Properties file of a Kafka client: bootstrap.servers, security.protocol, "
        "sasl.*, ssl.*.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
TopicNames = Annotated[list[str], typer.Argument(metavar="TOPIC", help="One or more topics.")]


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Repeated ``name=value``; a usage error names the invalid one."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def exactly_one(chosen: dict[str, bool]) -> str:
    """The single option that was given; a usage error otherwise."""
    given = [name for name, present in chosen.items() if present]
    if len(given) != 1:
        said = f"not {' and '.join(given)}" if given else "none was given"
        raise typer.BadParameter(f"exactly one is needed of {', '.join(chosen)}; {said}")
    return given[0]
