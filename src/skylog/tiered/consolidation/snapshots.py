"""The producers' state at the end of each consolidated segment, as Kafka stores it with one.

Nothing here reads it: the coordinator knows its producers. It is there for Kafka, and for whoever
takes a topic over with the segments alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import Malformed, decode_snapshot, encode_snapshot
from skylog.objects.store import NotFound
from skylog.tiered.assembly import followed
from skylog.tiered.segments import IndexType
from skylog.tiered.storage import DamagedSegment

if TYPE_CHECKING:
    from skylog.kernel.system import System
    from skylog.log.files import Files
    from skylog.log.producers import ProducerEntry
    from skylog.tiered.consolidation.assembly import Assembly, ClosedPart
    from skylog.tiered.ports import KnownLogs, RemoteStorage

_log = get_logger("tiered.consolidation")


class ProducerSnapshots:
    """Writes the snapshots of segments, oldest first."""

    def __init__(
        self, logs: KnownLogs, storage: RemoteStorage, files: Files, system: System
    ) -> None:
        self._logs = logs
        self._storage = storage
        self._files = files
        self._system = system

    async def write(self, assembly: Assembly, part: ClosedPart) -> None:
        """The snapshot of the oldest segment that has none. Raises a store's error, OSError."""
        if part.has_snapshot:
            return
        known = assembly.snapshot
        if known is not None and known[0] == part.wanted_from:
            work = partial(self._files.read_small, known[1], LOG_CHECKPOINT_BYTES_MAX)
            raw = await self._system.executor.run(work)
        else:
            raw = await self._fetch(assembly, part)
        target = part.segment.producer_snapshot
        await self._system.executor.run(partial(self._write, assembly, part, raw, target))
        part.has_snapshot = True
        assembly.snapshot = part.segment.next_offset, target

    async def _fetch(self, assembly: Assembly, part: ClosedPart) -> bytes | None:
        """That of the remote segment that ends before this one; once per leadership."""
        remote = self._logs.get(assembly.partition)
        before = None
        if remote is not None and part.wanted_from > 0:
            before = remote.segment_for(part.leader_epoch, part.wanted_from - 1)
        if before is None:
            return None
        try:
            return bytes(await self._storage.fetch_index(before, IndexType.PRODUCER_SNAPSHOT))
        except (NotFound, DamagedSegment) as error:
            _log.warning("producers not known", partition=assembly.name, why=str(error))
            return None

    def _write(self, assembly: Assembly, part: ClosedPart, raw: bytes | None, target: str) -> None:
        """On a thread."""
        earlier: list[ProducerEntry] = []
        try:
            if raw is not None:
                earlier = decode_snapshot(raw)
        except Malformed as error:
            _log.warning("producers not known", partition=assembly.name, why=str(error))
        now_ms, kept_ms = self._system.clock.now_ms(), assembly.config.producer_id_expiration_ms
        known = {one.producer_id: one for one in earlier if not one.is_expired(now_ms, kept_ms)}
        for entry in part.producers:
            known[entry.producer_id] = followed(known.get(entry.producer_id), entry)
        self._files.replace(target, encode_snapshot(known.values()), sync=False)
