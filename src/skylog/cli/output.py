"""Tables for terminals, aligned text for pipes, JSON for programs."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

Row = Mapping[str, object]
NOTHING: Final = "-"


def print_json(data: object) -> None:
    """One document."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=str) + "\n")


def print_json_line(data: object) -> None:
    """One of many documents, on its own line."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")


def say(text: str) -> None:
    """A status message, on stderr and not in the output."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def printable(text: str) -> str:
    """Names and values are untrusted: control characters are shown escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cell(value: object) -> str:
    """A value as shown in a table."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or NOTHING
    return printable(str(value))


def print_table(columns: Mapping[str, str], rows: Sequence[Row], title: str | None = None) -> None:
    """``columns`` maps a row's keys to headings, in the order of the columns."""
    if sys.stdout.isatty():
        _print_rich(columns, rows, title)
    else:
        _print_plain(columns, rows, title)


def _print_rich(columns: Mapping[str, str], rows: Sequence[Row], title: str | None) -> None:
    from rich import box  # noqa: PLC0415 - slow to import, not needed for pipes
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(printable(title)) if title else None,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    for key, heading in columns.items():
        table.add_column(heading, justify=_justify(rows, key), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row.get(key))) for key in columns))
    Console(highlight=False).print(table)


def _justify(rows: Sequence[Row], key: str) -> Any:
    values = [row.get(key) for row in rows if row.get(key) is not None]
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in values]
    return "right" if numbers and all(numbers) else "left"


def _print_plain(columns: Mapping[str, str], rows: Sequence[Row], title: str | None) -> None:
    lines = [[heading.upper() for heading in columns.values()]]
    lines += [[cell(row.get(key)) for key in columns] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    if title:
        sys.stdout.write(f"{printable(title)}\n")
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation before data is deleted, if the input is a terminal."""
    import typer  # noqa: PLC0415 - the rest of this module knows nothing of commands

    if not yes and sys.stdin.isatty() and sys.stdout.isatty():
        typer.confirm(question, abort=True)


def json_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as a field of a JSON object: as text if they are text, else in base64 under another
    name."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
