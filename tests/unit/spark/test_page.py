"""Reports are valid documents, whatever the names in them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from skylog.spark.jobs.page import Series, bars, lines, page, section, size_text, table, tiles

HOSTILE = '<script>alert("&")</script>'


class Judge(HTMLParser):
    """Every element is closed, and nothing is a script."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.rects: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        if tag != "meta":
            self.open.append(tag)
        if tag == "rect":
            self.rects.append(dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "line")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _judge(document: str) -> Judge:
    judge = Judge()
    judge.feed(document)
    judge.close()
    assert judge.open == []
    return judge


def test_a_page_of_everything() -> None:
    document = page(
        HOSTILE,
        HOSTILE,
        [
            section(HOSTILE, tiles({HOSTILE: HOSTILE}), table([HOSTILE, "n"], [[HOSTILE, 1234]])),
            bars(HOSTILE, ["a", HOSTILE], [Series(HOSTILE, [1, 2]), Series("b", [0, 2])], " MB"),
            lines(HOSTILE, ["a", "b"], [Series(HOSTILE, [1, 2])]),
        ],
    )
    judge = _judge(document)
    assert HOSTILE in judge.text
    assert "1,234" in judge.text


def test_bars_are_as_high_as_their_values() -> None:
    drawn = _judge(bars("t", ["a", "b"], [Series("s", [10, 5])])).rects
    heights = [float(rect["height"] or 0) for rect in drawn]
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.01)


def test_nothing_to_show_is_no_error() -> None:
    _judge(page("t", "", [bars("b", [], []), lines("l", [], []), table(["a"], [])]))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 50, "5,120.0 TiB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text
