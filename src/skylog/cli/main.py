"""The ``skylog`` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from skylog.kernel.errors import KafkaError, SkylogError

app = typer.Typer(
    name="skylog",
    help="A Kafka-compatible streaming platform whose topics live in object storage.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Config = Annotated[
    Path | None, typer.Argument(help="server.properties, as Kafka's; embedded defaults without.")
]
Override = Annotated[
    list[str] | None,
    typer.Option("--override", help="A setting as key=value; wins over file and environment."),
]


@app.command()
def server(config: Config = None, override: Override = None) -> None:
    """Start a node: broker and controller in one process, formatted on first start."""
    from skylog.broker.run import run_node  # noqa: PLC0415 - other commands do without a broker
    from skylog.cli.welcome import welcome  # noqa: PLC0415
    from skylog.kernel.logging import configure  # noqa: PLC0415
    from skylog.kernel.settings import load_settings  # noqa: PLC0415

    settings = load_settings(config, os.environ, override or [])
    configure(level=settings.observation.log_level, format=settings.observation.log_format)
    run_node(settings, welcome)


@app.command("format")
def format_(
    config: Config = None,
    override: Override = None,
    cluster_id: Annotated[
        str | None, typer.Option(help="Id of the cluster; a new one is drawn without.")
    ] = None,
    ignore_formatted: Annotated[
        bool, typer.Option(help="Leave directories alone that are formatted already.")
    ] = False,
) -> None:
    """Format the directories of a node, as kafka-storage format --standalone does."""
    from skylog.cli.format import format_node  # noqa: PLC0415
    from skylog.kernel.settings import load_settings  # noqa: PLC0415

    settings = load_settings(config, os.environ, override or [])
    format_node(settings, cluster_id, ignore_formatted=ignore_formatted)


def main() -> None:
    """Entry point: errors of ours end in one clear line, not in a traceback."""
    try:
        app()
    except SkylogError as error:
        message = error.message if isinstance(error, KafkaError) and error.message else error
        sys.stderr.write(f"skylog: {message}\n")
        raise SystemExit(1) from None
