"""Pure: which objects a remote segment is made of, for each layout, and in which order they are put
and deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from skylog.objects.keys import ObjectKey
from skylog.tiered.layout import aiven, local_tiered
from skylog.tiered.layout.aiven import CustomField, CustomMetadata, decode_custom, encode_custom
from skylog.tiered.layout.chunks import BadManifest
from skylog.tiered.layout.manifest import encode_manifest, plain_manifest
from skylog.tiered.segments import IndexType, RemoteSegment

# The log itself, an index, or bytes that are made for the object.
Part: TypeAlias = IndexType | bytes | None
LOG: None = None


class Put(NamedTuple):
    """One object: its parts, one behind the other."""

    key: ObjectKey
    parts: tuple[Part, ...]


class Copy(NamedTuple):
    """What to put of a segment, in order, and what its records will say of it."""

    puts: Sequence[Put]
    custom_metadata: bytes | None


class Layout(Protocol):
    """How the objects of segments are named and put together."""

    def copy(self, segment: RemoteSegment, sizes: Mapping[IndexType, int]) -> Copy:
        """``sizes`` of the indexes that there are."""
        ...

    def deletions(self, segment: RemoteSegment) -> Sequence[Sequence[ObjectKey]]:
        """Keys to delete, one group after the other."""
        ...

    def log_key(self, segment: RemoteSegment) -> ObjectKey: ...

    def manifest_key(self, segment: RemoteSegment) -> ObjectKey | None:
        """None in a layout without manifests: the log is plain, and each index an object."""
        ...

    def index_key(self, segment: RemoteSegment, kind: IndexType) -> ObjectKey:
        """The object that has the index, alone or with others."""
        ...


@dataclass(frozen=True, slots=True)
class AivenLayout:
    """``key_prefix`` is a part of the store's address; it is repeated in custom metadata only."""

    chunk_size: int = aiven.CHUNK_SIZE_DEFAULT
    custom_fields: Collection[CustomField] = ()
    key_prefix: str = ""

    def copy(self, segment: RemoteSegment, sizes: Mapping[IndexType, int]) -> Copy:
        here = CustomMetadata()
        kinds = tuple(kind for kind in IndexType if kind in sizes)
        manifest = encode_manifest(plain_manifest(segment, self.chunk_size, sizes))
        puts = (
            Put(aiven.object_key(segment, aiven.LOG, here), (LOG,)),
            Put(aiven.object_key(segment, aiven.INDEXES, here), kinds),
            Put(aiven.object_key(segment, aiven.MANIFEST, here), (manifest,)),
        )
        remote_size = segment.size + sum(sizes.values()) + len(manifest)
        custom = encode_custom(segment, self.custom_fields, remote_size, self.key_prefix)
        return Copy(puts, custom)

    def deletions(self, segment: RemoteSegment) -> Sequence[Sequence[ObjectKey]]:
        """Without its manifest a segment is no longer one, whatever is left of it."""
        manifest = aiven.object_key(segment, aiven.MANIFEST, CustomMetadata())
        return [manifest], [
            self._key(segment, aiven.LOG),
            self._key(segment, aiven.INDEXES),
        ]

    def log_key(self, segment: RemoteSegment) -> ObjectKey:
        return self._key(segment, aiven.LOG)

    def manifest_key(self, segment: RemoteSegment) -> ObjectKey:
        return aiven.object_key(segment, aiven.MANIFEST, CustomMetadata())

    def index_key(self, segment: RemoteSegment, kind: IndexType) -> ObjectKey:
        return self._key(segment, aiven.INDEXES)

    def _key(self, segment: RemoteSegment, suffix: str) -> ObjectKey:
        custom = decode_custom(segment.custom_metadata)
        prefix = custom.object_prefix
        if prefix is not None and prefix != self.key_prefix:
            raise BadManifest(
                f"the segment is below the prefix {prefix[:200]!r}, but key.prefix is"
                f" {self.key_prefix!r}"
            )
        return aiven.object_key(segment, suffix, custom)


@dataclass(frozen=True, slots=True)
class LocalTieredLayout:
    """A file for the log and one for each index."""

    def copy(self, segment: RemoteSegment, sizes: Mapping[IndexType, int]) -> Copy:
        puts = [Put(self.log_key(segment), (LOG,))]
        puts += [Put(self.index_key(segment, kind), (kind,)) for kind in IndexType if kind in sizes]
        return Copy(puts, None)

    def deletions(self, segment: RemoteSegment) -> Sequence[Sequence[ObjectKey]]:
        return [[local_tiered.object_key(segment, suffix) for suffix in local_tiered.SUFFIXES]]

    def log_key(self, segment: RemoteSegment) -> ObjectKey:
        return local_tiered.object_key(segment, local_tiered.LOG)

    def manifest_key(self, segment: RemoteSegment) -> ObjectKey | None:
        return None

    def index_key(self, segment: RemoteSegment, kind: IndexType) -> ObjectKey:
        return local_tiered.object_key(segment, local_tiered.INDEX_SUFFIXES[kind])
