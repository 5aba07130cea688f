"""The name in a client's certificate, and its mapping to a principal.

Java writes a distinguished name by RFC 2253: last part first, nine short keywords, every other
attribute by its number and the hexadecimal DER of its value. ACLs contain names in that notation,
so it is reproduced exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from skylog.kernel.errors import ConfigError, ProtocolError

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OBJECT_ID: Final = 0x06
_VERSION: Final = 0xA0
# UTF8String, PrintableString, IA5String; then those with an encoding other than UTF-8.
_TEXT: Final = {0x0C: "utf-8", 0x13: "utf-8", 0x16: "utf-8"}
_OTHER_TEXT: Final = {0x14: "latin-1", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
_ESCAPED: Final = frozenset(',=+<>#;"\\')


def subject_name(certificate: bytes) -> str:
    """The subject of a DER certificate in Java's notation; ProtocolError if it is invalid."""
    _, body = _element(certificate, 0, _SEQUENCE)
    _, fields = _element(body, 0, _SEQUENCE)
    elements = [(tag, content) for tag, content, _ in _elements(fields)]
    if elements and elements[0][0] == _VERSION:
        del elements[0]
    if len(elements) < 6 or elements[4][0] != _SEQUENCE:
        raise ProtocolError("the certificate has no subject")
    # serial number, signature algorithm, issuer, validity, subject
    parts = [_relative_name(content) for _, content, _ in _elements(elements[4][1])]
    return ",".join(reversed(parts))


def _relative_name(content: bytes) -> str:
    return "+".join(_attribute(pair) for _, pair, _ in _elements(content))


def _attribute(pair: bytes) -> str:
    elements = list(_elements(pair))
    if len(elements) != 2 or elements[0][0] != _OBJECT_ID:
        raise ProtocolError("a name in the certificate is malformed")
    number = _object_id(elements[0][1])
    tag, content, whole = elements[1]
    keyword = _KEYWORDS.get(number)
    encoding = _TEXT.get(tag) or _OTHER_TEXT.get(tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escape(content.decode(encoding, errors='replace'))}"


def _escape(text: str) -> str:
    inner = text.strip(" ")
    lead = len(text) - len(text.lstrip(" ")) if inner else len(text)
    trail = len(text) - lead - len(inner)
    escaped = "".join(
        "\\" + char if char in _ESCAPED else "\\00" if char == "\0" else char for char in inner
    )
    return "\\ " * lead + escaped + "\\ " * trail


def _object_id(content: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in content[:64]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise ProtocolError("an attribute in the certificate has no type")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - first * 40, *numbers[1:])))


def _element(data: bytes, offset: int, expected: int) -> tuple[int, bytes]:
    tag, content, _ = next(_elements(data[offset:]), (0, b"", b""))
    if tag != expected:
        raise ProtocolError("not a certificate")
    return tag, content


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The DER elements in ``data``: tag, content, and both with the length between."""
    offset = 0
    while offset + 2 <= len(data):
        start, tag, length = offset, data[offset], data[offset + 1]
        offset += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[offset : offset + count], "big")
            offset += count
        if offset + length > len(data):
            raise ProtocolError("the certificate ends early")
        yield tag, data[offset : offset + length], data[start : offset + length]
        offset += length


_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_RULE_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_RULE_PARSER: Final = re.compile(_RULE)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)")
DEFAULT_RULES: Final = "DEFAULT"


class PrincipalMapper:
    """``ssl.principal.mapping.rules``: the first rule that matches a whole name rewrites it."""

    def __init__(self, rules: str = DEFAULT_RULES) -> None:
        self._rules: list[_Rule | None] = []  # None: the name unchanged
        for match in _RULE_SPLITTER.finditer(rules.strip()):
            self._add(match.group(1))

    def _add(self, rule: str) -> None:
        parsed = _RULE_PARSER.fullmatch(rule)
        if parsed is None or (rule and parsed.group(1) is None and parsed.group(2) is None):
            raise ConfigError(
                f"ssl.principal.mapping.rules has {rule!r}; allowed are DEFAULT and "
                "RULE:pattern/replacement/ with an L or U after it"
            )
        if parsed.group(1) is not None:
            self._rules.append(None)
        elif parsed.group(2) is not None:
            self._rules.append(_Rule(parsed.group(2), parsed.group(3), parsed.group(4)))

    def name(self, distinguished_name: str) -> str:
        """The user's name; ProtocolError if no rule applies, which closes the connection."""
        for rule in self._rules:
            found = distinguished_name if rule is None else rule.apply(distinguished_name)
            if found is not None:
                return found
        raise ProtocolError(f"No rules apply to {distinguished_name}")


class _Rule:
    def __init__(self, pattern: str, replacement: str, case: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f"ssl.principal.mapping.rules has the pattern {pattern!r}: {error}"
            ) from error
        self._replacement = replacement
        self._case = case

    def apply(self, name: str) -> str | None:
        if self._pattern.fullmatch(name) is None:
            return None
        # Like Java's replaceAll, which also replaces the empty match at the end that `.*` leaves.
        found = self._pattern.sub(self._expand, name)
        return {"L": found.lower(), "U": found.upper()}.get(self._case, found)

    def _expand(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda reference: _referred(reference, match), self._replacement)


def _referred(reference: re.Match[str], match: re.Match[str]) -> str:
    """The group that ``$12`` refers to: as many of its digits as form a group number; else
    itself."""
    if reference.group(1) is not None:
        return reference.group(1)
    digits = reference.group(2)
    for length in range(len(digits), 0, -1):
        if int(digits[:length]) <= match.re.groups:
            return (match.group(int(digits[:length])) or "") + digits[length:]
    return reference.group(0)
