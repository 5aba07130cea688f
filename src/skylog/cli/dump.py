"""``skylog dump``."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.dump_files import DumpSettings, dump_file, is_known
from skylog.cli.dump_records import Decoder
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Json
from skylog.cli.output import cell, print_json_line, say
from skylog.cli.times import format_time
from skylog.log.names import parse_directory_name

app = new_app()


@app.command(
    epilog=examples(
        "skylog dump data/hello-0",
        "skylog dump data/hello-0/00000000000000000000.log --batches-only",
        "skylog dump data/__cluster_metadata-0/00000000000000000000.log --json",
        "skylog dump data/__consumer_offsets-7 --from-offset 1000 --max 20",
        "skylog dump data/__remote_log_metadata-12 --json",
    )
)
def dump(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files of a log directory (.log, .index, .timeindex, .txnindex, .snapshot, "
            ".checkpoint, checkpoints of offsets and epochs), or a partition's directory.",
        ),
    ],
    decoder: Annotated[
        Decoder,
        typer.Option("--decoder", help="How to decode keys and values; auto depends on the topic."),
    ] = Decoder.AUTO,
    batches_only: Annotated[
        bool, typer.Option("--batches-only", help="Show batches without their records.")
    ] = False,
    from_offset: Annotated[
        int, typer.Option("--from-offset", min=0, help="Start at this offset in logs.")
    ] = 0,
    max_: Annotated[
        int | None, typer.Option("--max", "-n", min=1, help="Maximum number of rows per file.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the contents of log files: offline, without a broker, read-only.

    Records of the cluster's metadata, of committed offsets, of transactions, of the coordinators
    of diskless topics and of remote segments are decoded. Checksums, offsets and indexes are
    verified; the exit code is 1 if anything is wrong. The last batch of a log that a running
    broker writes to may be incomplete.
    """
    files = _files(paths)
    settings = DumpSettings(decoder, batches_only, from_offset)
    faults = 0
    for path in files:
        if json:
            sys.stdout.flush()
        elif len(files) > 1:
            print(f"== {path}")
        try:
            empty = True
            for row in islice(dump_file(path, settings), max_):
                empty = False
                faults += "fault" in row
                show_row(path, row, json=json)
            if empty:
                say(f"{path} is empty")
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from None
    if faults:
        raise CommandError(f"{counted(faults, 'fault')} found, see `fault` above")


def _files(paths: list[Path]) -> list[Path]:
    """The files to show, checked before the first is shown."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += _directory(path)
        elif not path.is_file():
            raise CommandError(f"{path} does not exist")
        elif not is_known(path):
            raise CommandError(f"{path.name} is not a known kind of file; see --help")
        else:
            found.append(path)
    return found


def _directory(path: Path) -> list[Path]:
    inside = sorted(path.iterdir())
    known = [file for file in inside if file.is_file() and is_known(file)]
    partitions = [entry.name for entry in inside if parse_directory_name(entry.name)]
    if partitions and not any(file.suffix == ".log" for file in known):
        shown = ", ".join(partitions[:5]) + (", …" if len(partitions) > 5 else "")
        raise CommandError(f"{path} holds many logs; name a partition's directory in it: {shown}")
    if not known:
        raise CommandError(f"{path} has no log files")
    return known


def show_row(path: Path, row: dict[str, Any], *, json: bool) -> None:
    """One row of a file."""
    if json:
        print_json_line({"file": str(path), **row})
        return
    kind = row.pop("kind")
    indent = "  " if kind == "record" else ""
    sys.stdout.write(f"{indent}{kind}: {' '.join(_pairs(row))}\n")


def _pairs(row: dict[str, Any]) -> Iterator[str]:
    for name, value in row.items():
        if "timestamp" in name and isinstance(value, int) and value >= 0:
            yield f"{name}={format_time(value)}"
        elif isinstance(value, dict | list) or (isinstance(value, str) and " " in value):
            yield f"{name}={json_module.dumps(value)}"
        else:
            yield f"{name}={'null' if value is None else cell(value)}"
