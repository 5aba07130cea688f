"""Java's properties syntax, by cases that Java itself was asked about."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ConfigError
from skylog.kernel.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a = = c", {"a": "= c"}),
        ("=b", {"": "b"}),
        ("# c\n! d\n\n a=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a=\\t\\n\\u0041\\z", {"a": "\t\nAz"}),
        ("a=\\ud83d\\ude00", {"a": "\N{GRINNING FACE}"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=b\\\n# not a comment", {"a": "b# not a comment"}),
    ],
)
def test_parsed_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=1\n\nb=\\uuuu"])
def test_malformed(text: str) -> None:
    with pytest.raises(ConfigError, match="line"):
        parse_properties(text)
