"""docs/reference: the page of the command line, from ``skylog COMMAND --help`` of all commands."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from skylog.cli.main import app

INTRODUCTION = """
`skylog` starts nodes and talks to clusters, skylog's and Kafka's alike. `skylog COMMAND --help`
shows the same text as this page.

- **Output** is a table on a terminal, aligned text in a pipe, JSON with `--json`. Progress messages
  go to standard error.
- **Exit code**: 0 – success; 1 – failure, and one line on standard error says why and what to do;
  2 – the command is invalid and did nothing; 130, 143 – ended by Ctrl-C, by SIGTERM.
- **Security**: `--client-config FILE` takes the same file as `--command-config` of Kafka's tools:

```properties
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" password="…";
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
```
"""


def cli_page(generated: str) -> str:
    """All commands with their arguments, options and examples."""
    lines = [generated, "", "# The command line", *INTRODUCTION.splitlines(), ""]
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="skylog")
    for name in root.list_commands(context):
        lines += command_section(root.get_command(context, name), name, context, 2)
    return "\n".join(lines).rstrip() + "\n"


def command_section(command: Any, name: str, parent: Any, level: int) -> list[str]:
    """A command, or a group followed by its commands."""
    context = command.context_class(command, info_name=name, parent=parent)
    lines = [f"{'#' * level} {context.command_path}", "", inspect.cleandoc(command.help or ""), ""]
    if hasattr(command, "list_commands"):
        for child in command.list_commands(context):
            lines += command_section(command.get_command(context, child), child, context, level + 1)
        return lines
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    lines += ["```text", usage, "```", "", "| Option | Description |", "|---|---|"]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in record[0]:
            lines.append(f"| `{record[0].strip()}` | {in_cell(record[1])} |")
    shown = [line.strip() for line in (command.epilog or "").splitlines()[2:]]
    return [*lines, "", *(["```sh", *shown, "```", ""] if shown else [])]


def in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
