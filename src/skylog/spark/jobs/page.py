"""Pure: a report as one self-contained HTML page: no script, no network, plots in SVG.

Texts are escaped here; callers pass plain strings. Numbers are in tables under the plots, so that
nothing depends on colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 860
_HEIGHT: Final = 240
_LEFT: Final = 70
_BOTTOM: Final = 40
_TOP: Final = 16
_COLOURS: Final = ("#2f6fde", "#d9622b", "#1f9d6b", "#a04bc9", "#b58900", "#5b6b7b")
_TICKS: Final = 4
_LABELS_MAX: Final = 8
_LEGEND_MAX: Final = len(_COLOURS)
_KIB: Final = 1024

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; }
.tile { background: var(--soft); border-radius: .5rem; padding: .7rem 1rem; min-width: 8rem; }
.tile b { display: block; font-size: 1.3rem; }
.good { color: #1f9d6b; } .bad { color: #d33; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; }
.wide { overflow-x: auto; } code { font-size: .9em; }
"""


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one colour of bars; a value for each label of the plot."""

    name: str
    values: Sequence[float]


def page(title: str, lead: str, sections: Sequence[str]) -> str:
    """The whole document."""
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1><p>{escape(lead)}</p>"
        + "\n".join(sections)
        + "</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str, *, mood: str = "") -> str:
    """``mood``: "good" or "bad", or nothing."""
    return f'<p class="{escape(mood)}">{escape(text)}</p>'


def tiles(values: Mapping[str, str]) -> str:
    """The most important numbers."""
    cells = (
        f'<div class="tile"><b>{escape(value)}</b>{escape(name)}</div>'
        for name, value in values.items()
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Numbers are right-aligned, including their column heading."""
    numeric = [bool(rows) and _is_number(rows[0][at]) for at in range(len(columns))]
    head = "".join(_cell("th", name, numeric[at]) for at, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(_cell("td", value, numeric[at]) for at, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(tag: str, value: object, right: bool) -> str:
    mark = ' class="n"' if right else ""
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return f"<{tag}{mark}>{escape(text)}</{tag}>"


def bars(title: str, labels: Sequence[str], series: Sequence[Series], unit: str = "") -> str:
    """Stacked bars, one for each label."""
    totals = [sum(one.values[at] for one in series) for at in range(len(labels))]
    scale = _Scale(max(totals, default=0), len(labels))
    marks = []
    for at, label in enumerate(labels):
        base = 0.0
        for number, one in enumerate(series):
            value = one.values[at]
            if value <= 0:
                continue
            top = scale.y(base + value)
            marks.append(
                f'<rect x="{scale.x(at):.1f}" y="{top:.1f}" width="{scale.step * 0.8:.1f}" '
                f'height="{scale.y(base) - top:.1f}" fill="{_colour(number)}">'
                f"<title>{escape(f'{label} · {one.name}: {_short(value)}{unit}')}</title></rect>"
            )
            base += value
    return _figure(title, labels, series, scale, unit, "".join(marks))


def lines(title: str, labels: Sequence[str], series: Sequence[Series], unit: str = "") -> str:
    """A line for each series."""
    highest = max((value for one in series for value in one.values), default=0)
    scale = _Scale(highest, len(labels))
    marks = []
    for number, one in enumerate(series):
        points = " ".join(
            f"{scale.middle(at):.1f},{scale.y(value):.1f}" for at, value in enumerate(one.values)
        )
        marks.append(
            f'<polyline points="{points}" fill="none" stroke-width="2" '
            f'stroke="{_colour(number)}"><title>{escape(one.name)}</title></polyline>'
        )
    return _figure(title, labels, series, scale, unit, "".join(marks))


class _Scale:
    """Converts values and positions to points of the plot."""

    def __init__(self, highest: float, count: int) -> None:
        self.highest = highest or 1.0
        self.step = (_WIDTH - _LEFT) / max(1, count)

    def x(self, at: int) -> float:
        return _LEFT + self.step * (at + 0.1)

    def middle(self, at: int) -> float:
        return _LEFT + self.step * (at + 0.5)

    def y(self, value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / self.highest)


def _figure(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    scale: _Scale,
    unit: str,
    marks: str,
) -> str:
    rules = []
    for tick in range(_TICKS + 1):
        value = scale.highest * tick / _TICKS
        y = scale.y(value)
        rules.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(_short(value) + unit)}</text>"
        )
    every = max(1, -(-len(labels) // _LABELS_MAX))
    names = "".join(
        f'<text x="{scale.middle(at):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">'
        f"{escape(label)}</text>"
        for at, label in enumerate(labels)
        if at % every == 0
    )
    legend = "".join(
        f'<rect x="{_LEFT + 130 * at}" y="{_HEIGHT - 14}" width="10" height="10" '
        f'fill="{_colour(at)}"/><text x="{_LEFT + 130 * at + 14}" y="{_HEIGHT - 5}">'
        f"{escape(one.name[:18])}</text>"
        for at, one in enumerate(series[:_LEGEND_MAX])
    )
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{"".join(rules)}{marks}{names}{legend}</svg>'
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _short(value: float) -> str:
    """At most three digits, with a letter for thousands."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(value) < 1000:
            return f"{value:.3g}{letter}"
        value /= 1000
    return f"{value:.3g}P"


def size_text(count: float) -> str:
    """Bytes in readable units."""
    if count < _KIB:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= _KIB
        if count < _KIB:
            return f"{count:,.1f} {unit}"
    return f"{count / _KIB:,.1f} TiB"
