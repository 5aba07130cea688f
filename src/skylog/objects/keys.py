"""Pure: object keys, typed. No free text reaches a store.

A generated key is ``wal/7f/018bcfe5687b3c1d…7f``: kind, two hex digits that spread the load over a
bucket's partitions, and an id whose first twelve digits are the time of creation. The two digits
are the id's last, so that every key has exactly one text. A *staged* key names its owner before
that, ``staging/8c6976e5b5410415/7f/018bcfe5687b3c1d…7f``: a principal cannot commit what another
has staged. Staging and backup objects may also be *named*, ``backup/metadata/0/latest``, if they
must be found again or put only once.

Those keys are lower case, so that they stay distinct on a file system that ignores case, and no
topic name enters them.

Objects of remote segments have the keys that others gave them: those of Aiven's
plugin, ``orders-lZ6vvmajTWKDBUTV6SQAtQ/42/00000000000000000100-adh9f8BMS4anaUnD8KWfWg.log``, and
those of Kafka's LocalTieredStorage, which are below ``kafka-tiered-storage/``. They do have topic
names, and ids whose letters differ in case.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from skylog.kernel.errors import SkylogError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import Random
from skylog.kernel.topics import topic_name_fault

Kind: TypeAlias = Literal["wal", "staging", "backup"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

KEY_CHARACTERS_MAX: Final = 512
_FRESH: Final = re.compile(r"([0-9a-f]{2})/([0-9a-f]{12})[0-9a-f]{18}([0-9a-f]{2})\Z", re.ASCII)
_NAMED: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}(?:\.[a-z0-9_-]{1,16})*\Z", re.ASCII)
_OWNED: Final = re.compile(r"([0-9a-f]{16})/(.*)\Z", re.ASCII | re.DOTALL)
_SEGMENTS_MAX: Final = 6

LOCAL_TIERED_ROOT: Final = "kafka-tiered-storage"
_TOPIC: Final = r"([a-zA-Z0-9._-]{1,249})"
_ID: Final = r"([a-zA-Z0-9_-]{22})"
_PARTITION: Final = r"(0|[1-9][0-9]{0,9})"
_SEGMENT: Final = rf"([0-9]{{20}})-{_ID}"
_PLUGIN_FOLDER: Final = rf"{_TOPIC}-{_ID}/"
_LOCAL_FOLDER: Final = rf"{LOCAL_TIERED_ROOT}/{_TOPIC}-{_PARTITION}-{_ID}/"
_PLUGIN_KEY: Final = re.compile(
    rf"{_PLUGIN_FOLDER}{_PARTITION}/{_SEGMENT}\.(log|indexes|rsm-manifest)\Z", re.ASCII
)
_LOCAL_KEY: Final = re.compile(
    rf"{_LOCAL_FOLDER}{_SEGMENT}\.(log|index|timeindex|txnindex|leader_epoch_checkpoint|snapshot)\Z",
    re.ASCII,
)
_SEGMENT_PREFIX: Final = re.compile(
    rf"(?:{_PLUGIN_FOLDER}(?:{_PARTITION}/)?|{LOCAL_TIERED_ROOT}/|{_LOCAL_FOLDER})\Z", re.ASCII
)


class BadKey(SkylogError, ValueError):  # noqa: N818
    """A text that is not an object key."""


class SegmentName(NamedTuple):
    """Which object of which remote segment a key names."""

    topic: str
    topic_id: Uuid
    partition: int
    start_offset: int
    segment_id: Uuid
    suffix: str


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
            if segment_name(text):
                return cls(text, None)
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
        """One of KINDS, or that of a remote segment."""
        kind = self.text.partition("/")[0]
        return kind if kind in KINDS else "segment"

    @property
    def segment(self) -> SegmentName | None:
        """None unless the object belongs to a remote segment."""
        return segment_name(self.text)

    @property
    def owner(self) -> str | None:
        """The owner of a staged object; None for others."""
        owned = _OWNED.match(self.text.removeprefix("staging/"))
        return owned[1] if owned else None

    def __str__(self) -> str:
        return self.text


def segment_name(text: str) -> SegmentName | None:
    """Parse the key of a remote segment's object; None for all others."""
    plugin = _PLUGIN_KEY.match(text)
    local = None if plugin else _LOCAL_KEY.match(text)
    if plugin:
        topic, topic_id, partition, offset, segment_id, suffix = plugin.groups()
    elif local:
        topic, partition, topic_id, offset, segment_id, suffix = local.groups()
    else:
        return None
    ids = [Uuid.parse(topic_id), Uuid.parse(segment_id)]
    # Some bits of an id's last character have no meaning: every key has one text only.
    exact = [str(found) for found in ids] == [topic_id, segment_id]
    fits = int(partition) < 1 << 31 and int(offset) < 1 << 63
    if not exact or not fits or topic_name_fault(topic):
        return None
    return SegmentName(topic, ids[0], int(partition), int(offset), ids[1], suffix)


def staging_owner(principal: str) -> str:
    """The text that replaces a principal's name in the keys of its staged objects."""
    return hashlib.sha256(principal.encode()).hexdigest()[:16]


def checked_prefix(prefix: str) -> str:
    """A prefix to list; refused unless keys could begin with it and it ends at a slash."""
    if prefix == "" or _SEGMENT_PREFIX.match(prefix):
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
