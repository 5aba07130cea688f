"""The printed figures: one table, and the ratios as bars."""

from __future__ import annotations

import math
import statistics

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.measure import Figure, spread

BAR_CELLS = 48
# The bars' scale: from a thirty-second of Kafka's figure to thirty-two times it.
BAR_OCTAVES = 5
VERDICTS = {
    True: Text("met", style="green"),
    False: Text("MISSED", style="bold red"),
    None: Text(""),
}


def _median(values: list[float]) -> str:
    if not values:
        return "–"
    return f"{_number(statistics.median(values))} ±{spread(values):.0%}"


def _number(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def table(figures: list[Figure], title: str) -> Table:
    made = Table(title=title, title_justify="left", header_style="bold")
    made.add_column("what")
    for column in ("skylog", "Kafka", "ratio", "goal"):
        made.add_column(column, justify="right", no_wrap=True)
    made.add_column("")
    for figure in figures:
        what = f"{figure.what} [dim]({figure.unit})[/dim]"
        if figure.note:
            what += f"\n[dim]{figure.note}[/dim]"
        ratio = figure.ratio
        made.add_row(
            what,
            _median(figure.skylog),
            _median(figure.kafka),
            "–" if ratio is None else f"{ratio:.2f} ×",
            "–" if figure.goal is None else str(figure.goal),
            VERDICTS[figure.met],
        )
    return made


def bars(figures: list[Figure]) -> Table:
    """skylog by Kafka on a logarithmic scale; right of the middle is more than Kafka."""
    made = Table(
        title="skylog : Kafka, each step a doubling", title_justify="left", box=None, padding=(0, 1)
    )
    made.add_column("", no_wrap=True)
    made.add_column("", no_wrap=True)
    for figure in figures:
        ratio = figure.ratio
        if ratio is not None and ratio > 0:
            made.add_row(figure.what, _bar(ratio, "red" if figure.met is False else "green"))
    return made


def _bar(ratio: float, style: str) -> Text:
    half = BAR_CELLS // 2
    octaves = max(-BAR_OCTAVES, min(BAR_OCTAVES, math.log2(ratio)))
    cells = round(abs(octaves) / BAR_OCTAVES * half)
    left = "█" * cells if octaves < 0 else ""
    right = "█" * cells if octaves >= 0 else ""
    bar = Text(left.rjust(half), style=style)
    bar.append("│", style="dim")
    bar.append(right.ljust(half), style=style)
    bar.append(f" {ratio:.2f} ×", style="default")
    return bar


def show(figures: list[Figure], title: str) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table(figures, title))
    if any(figure.ratio is not None for figure in figures):
        console.print(bars(figures))
