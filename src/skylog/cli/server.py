"""``skylog server``."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Annotated

import typer

from skylog.cli.command_tree import examples, new_app

app = new_app()

Config = Annotated[
    Path | None, typer.Argument(help="server.properties, as in Kafka (default: embedded defaults).")
]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--override",
        metavar="NAME=VALUE",
        help="A setting; overrides file and environment; repeatable.",
    ),
]


@app.command(
    epilog=examples(
        "skylog server",
        "skylog server --override log.dirs=/tmp/skylog --override num.partitions=3",
        "skylog server config/server.properties",
        "SKYLOG_LOG_RETENTION_HOURS=1 skylog server",
    )
)
def server(
    config: Config = None,
    override: Override = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Create the diskless topic demo, for experiments.")
    ] = False,
) -> None:
    """Start a node: broker and controller in one process, formatted on first start.

    Runs until Ctrl-C or SIGTERM, which shut it down cleanly; a second signal ends it at once.
    """
    # Start-up allocates much and frees little: the garbage collector is enabled once the node is
    # up.
    gc.disable()
    try:
        _serve(config, override or [], demo=demo)
    finally:
        gc.enable()


def _serve(config: Path | None, overrides: list[str], *, demo: bool) -> None:
    from skylog.broker.assembly.run import run_node  # noqa: PLC0415 - not needed for --help
    from skylog.cli.welcome import DEMO_TOPIC, welcome  # noqa: PLC0415
    from skylog.kernel.logging import configure  # noqa: PLC0415
    from skylog.kernel.settings import load_settings  # noqa: PLC0415

    settings = load_settings(config, os.environ, overrides)
    configure(level=settings.observation.log_level, format=settings.observation.log_format)
    topics = [DEMO_TOPIC] if demo else []
    run_node(settings, welcome, diskless_topics=topics)
