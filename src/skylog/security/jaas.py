"""The JAAS notation of ``sasl.jaas.config``: a login module, a flag, options, a semicolon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from skylog.kernel import limits
from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret

_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<quoted> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<word> [\w.$\-]+ )
    | (?P<mark> [=;] )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
USER_PREFIX: Final = "user_"


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module and its options, which may be passwords."""

    module: str
    options: dict[str, Secret] = field(default_factory=dict)

    @property
    def username(self) -> str | None:
        name = self.options.get("username")
        return None if name is None else name.reveal()

    @property
    def password(self) -> Secret | None:
        return self.options.get("password")

    def users(self) -> dict[str, Secret]:
        """The users in ``user_alice="…"`` options of a PLAIN listener."""
        return {
            name.removeprefix(USER_PREFIX): secret
            for name, secret in self.options.items()
            if name.startswith(USER_PREFIX)
        }


def parse_jaas(text: str, key: str = "sasl.jaas.config") -> JaasEntry:
    """Parse an entry; ConfigError names the key, never the value, which contains passwords."""
    tokens = list(_tokens(text, key))
    if len(tokens) < 2 or tokens[0] in ("=", ";"):
        raise ConfigError(f"{key}: a login module and a control flag come first")
    module, flag = tokens[0], tokens[1]
    if flag.upper() not in _FLAGS:
        raise ConfigError(f"{key}: the control flag is one of {', '.join(sorted(_FLAGS))}")
    if tokens[-1] != ";" or tokens.count(";") != 1:
        raise ConfigError(f"{key}: one entry, which ends with a semicolon, is allowed")
    options: dict[str, Secret] = {}
    rest = tokens[2:-1]
    for index in range(0, len(rest), 3):
        name, equals, value = (*rest[index : index + 3], "", "")[:3]
        if equals != "=" or len(rest) < index + 3 or value == "=":
            raise ConfigError(f"{key}: value not specified for key '{name}'")
        options[name] = Secret(value.removeprefix(_QUOTED))
    return JaasEntry(module, options)


# Marks a quoted token, so that ";" in quotes does not end the entry.
_QUOTED: Final = "\0"


def _tokens(text: str, key: str) -> Iterator[str]:
    if len(text) > limits.JAAS_CHARACTERS_MAX:
        raise ConfigError(f"{key} is longer than {limits.JAAS_CHARACTERS_MAX} characters")
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConfigError(f"{key}: character {position} is out of place; quote the value")
        if match["quoted"] is not None:
            yield _QUOTED + _ESCAPE.sub(_unescaped, match["quoted"][1:-1])
        elif match["word"] is not None or match["mark"] is not None:
            yield match.group(0)
        position = match.end()


def _unescaped(match: re.Match[str]) -> str:
    found = match.group(1)
    if found[0] in "01234567":
        return chr(int(found, 8))
    return _ESCAPES.get(found, found)
