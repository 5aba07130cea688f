"""The command tree: a command's module is imported only when the command is used."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from skylog.cli.errors import one_line
from skylog.kernel.errors import SkylogError

EXIT_FAILED: Final = 1
EXIT_TERMINATED: Final = 143  # the shell's exit code for SIGTERM

# Command → module below skylog.cli, and its line in `skylog --help`.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "server": ("server", "Start a node: broker and controller in one process."),
    "format": ("format", "Format the directories of a node."),
    "topics": ("topics", "Create, list, describe, alter and delete topics."),
    "produce": ("produce", "Send lines from standard input or a file to a topic."),
    "consume": ("consume", "Print the records of a topic."),
    "groups": ("groups", "List, describe and delete groups; see their lag, move their offsets."),
    "configs": ("configs", "Show and change settings of topics, brokers and loggers."),
    "cluster": ("cluster", "Show nodes, controller, quorum and features of a cluster."),
    "perf": ("perf", "Measure throughput and latency."),
    "dump": ("dump", "Decode log segments, indexes and snapshots, without a broker."),
    "diskless": ("diskless", "Inspect diskless topics: files, batches, coordinators, orphans."),
    "tiered": ("tiered", "Inspect tiered storage: remote segments, what is where, damage."),
    "spark": ("spark", "Bulk jobs: audit, segments, tables, replay, load, report."),
    "restore": ("restore", "Restore a node that lost its disks from its object store."),
    "version": ("version", "Show the version of skylog."),
}


def new_app(*, group: bool = False, **more: Any) -> typer.Typer:
    """A command or command group with the common settings."""
    return typer.Typer(
        no_args_is_help=group,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **more,
    )


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, which must not be wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class LazyGroup(TyperGroup):
    """``skylog`` itself. Our own errors are printed as one line, not as a traceback."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Enough to list commands and to suggest one after a typing error.
        self.commands = {
            name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"skylog.cli.{COMMANDS[cmd_name][0]}")
        return typer.main.get_command(module.app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SkylogError as error:
            sys.stderr.write(f"skylog: {one_line(error)}\n")
            raise typer.Exit(EXIT_FAILED) from None
        except asyncio.CancelledError:
            raise typer.Exit(EXIT_TERMINATED) from None
