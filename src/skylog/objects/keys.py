"""Pure: object keys, typed. No free text reaches a store, and no topic name enters a key.

A generated key is ``wal/7f/018bcfe5687b3c1d…7f``: kind, two hex digits that spread the load over a
bucket's partitions, and an id whose first twelve digits are the time of creation. The two digits
are the id's last, so that every key has exactly one text. A *staged* key names its owner before
that, ``staging/8c6976e5b5410415/7f/018bcfe5687b3c1d…7f``: a principal cannot commit what another
has staged. Staging and backup objects may also be *named*, ``backup/metadata/0/latest``, if they
must be found again or put only once.

Keys are lower case, so that they stay distinct on a file system that ignores case.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from skylog.kernel.errors import SkylogError
from skylog.kernel.rng import Random

Kind: TypeAlias = Literal["wal", "staging", "backup"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

KEY_CHARACTERS_MAX: Final = 512
_FRESH: Final = re.compile(r"([0-9a-f]{2})/([0-9a-f]{12})[0-9a-f]{18}([0-9a-f]{2})\Z", re.ASCII)
_NAMED: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,16})*\Z", re.ASCII)
_OWNED: Final = re.compile(r"([0-9a-f]{16})/(.*)\Z", re.ASCII | re.DOTALL)
_SEGMENTS_MAX: Final = 6


class BadKey(SkylogError, ValueError):  # noqa: N818
    """A text that is not an object key."""


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """The name of one object. Created by ``new``, ``named`` or ``parse``, never from free text."""

    text: str
    created_ms: int | None  # None for a named key

    @classmethod
    def new(cls, kind: Kind, clock_ms: int, rng: Random) -> ObjectKey:
        """A new unguessable key; keys of one kind and digits sort by time."""
        unique = f"{clock_ms:012x}{rng.randbytes(10).hex()}"
        return cls.parse(f"{kind}/{unique[-2:]}/{unique}")

    @classmethod
    def staged(cls, owner: str, clock_ms: int, rng: Random) -> ObjectKey:
        """A new key for a bulk writer; ``owner`` is the ``staging_owner`` of its principal."""
        unique = f"{clock_ms:012x}{rng.randbytes(10).hex()}"
        return cls.parse(f"staging/{owner}/{unique[-2:]}/{unique}")

    @classmethod
    def named(cls, kind: Kind, *segments: str) -> ObjectKey:
        """A key with a chosen name, for staging and backup objects."""
        return cls.parse("/".join((kind, *segments)))

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """Parse a key; refuses everything that the others would not create."""
        if len(text) > KEY_CHARACTERS_MAX:
            raise BadKey(f"object key of {len(text)} characters")
        kind, _, rest = text.partition("/")
        if kind not in KINDS:
            raise BadKey(f"not an object key: {text!r}")
        owned = _OWNED.match(rest) if kind == "staging" else None
        fresh = _FRESH.match(owned[2] if owned else rest)
        if fresh and (kind != "staging" or owned):
            if fresh[1] != fresh[3]:
                raise BadKey(f"object key whose digits do not match: {text!r}")
            return cls(text, int(fresh[2], 16))
        segments = rest.split("/")
        if kind == "wal" or len(segments) > _SEGMENTS_MAX or not all(map(_NAMED.match, segments)):
            raise BadKey(f"not an object key: {text!r}")
        return cls(text, None)

    @property
    def kind(self) -> str:
        return self.text.partition("/")[0]

    @property
    def owner(self) -> str | None:
        """The owner of a staged object; None for others."""
        owned = _OWNED.match(self.text.removeprefix("staging/"))
        return owned[1] if owned else None

    def __str__(self) -> str:
        return self.text


def staging_owner(principal: str) -> str:
    """The text that replaces a principal's name in the keys of its staged objects."""
    return hashlib.sha256(principal.encode()).hexdigest()[:16]


def checked_prefix(prefix: str) -> str:
    """A prefix to list; refused unless keys could begin with it and it ends at a slash."""
    if prefix == "":
        return prefix
    segments = prefix.split("/")
    whole = segments[-1] == "" and segments[0] in KINDS and len(segments) <= _SEGMENTS_MAX + 1
    if len(prefix) > KEY_CHARACTERS_MAX or not whole or not all(map(_NAMED.match, segments[1:-1])):
        raise BadKey(f"not a prefix of object keys: {prefix!r}")
    return prefix


def known(text: str) -> ObjectKey | None:
    """The key in a listing, or None for an object that is not ours."""
    try:
        return ObjectKey.parse(text)
    except BadKey:
        return None
