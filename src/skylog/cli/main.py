"""The ``skylog`` command."""

from __future__ import annotations

from typing import Annotated

import typer

from skylog.cli.command_tree import LazyGroup, examples, new_app

app = new_app(group=True, name="skylog", cls=LazyGroup)


def _show_version(wanted: bool) -> None:
    if wanted:
        from skylog.cli.version import version_line  # noqa: PLC0415 - slow to import, rarely used

        typer.echo(version_line())
        raise typer.Exit


@app.callback(
    epilog=examples(
        "skylog server",
        "skylog topics create hello --partitions 3",
        "echo 'hello, log' | skylog produce hello",
        "skylog consume hello --from-beginning",
    )
)
def skylog(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """A Kafka-compatible streaming platform whose topics live in object storage.

    `skylog COMMAND --help` explains a command. Commands that need a cluster connect to
    127.0.0.1:9092 unless --bootstrap or the environment variable SKYLOG_BOOTSTRAP names another.
    """


def main() -> None:
    """Entry point."""
    app(prog_name="skylog")


if __name__ == "__main__":
    main()
