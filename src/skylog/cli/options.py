"""Options that many commands share, and the readers of their values."""

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
        help=f"Brokers to ask first, separated by commas; {BOOTSTRAP_DEFAULT} without.",
    ),
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        "--client-config",
        "-c",
        metavar="FILE",
        help="Properties of a Kafka client: bootstrap.servers, security.protocol, sasl.*, ssl.*.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
TopicNames = Annotated[list[str], typer.Argument(metavar="TOPIC", help="One topic or more.")]


def parse_pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """``name=value`` many times over; a usage error names the one that is not."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        found[name] = value
    return found


def exactly_one(chosen: dict[str, bool]) -> str:
    """The option that was given; a usage error unless it is one."""
    given = [name for name, present in chosen.items() if present]
    if len(given) != 1:
        said = f"not {' and '.join(given)}" if given else "none was given"
        raise typer.BadParameter(f"exactly one is needed of {', '.join(chosen)}; {said}")
    return given[0]
