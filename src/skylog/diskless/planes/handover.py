"""Deletion of files with several coordinators (KIP-1164).

The first in the list of owners has the file. An owner without live batches hands the file to the
next, which logs that; the last owner deletes it. None of this is urgent, and all of it may be
repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.state import FileState
from skylog.diskless.plane import DescribeFileResult
from skylog.diskless.planes.coordinators import Coordinators
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.logging import get_logger

_log = get_logger("diskless.files")


class Handover:
    """The files of the coordinators led here; the next owners may be anywhere."""

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators

    async def describe_files(self, keys: Sequence[str]) -> list[DescribeFileResult]:
        """A file is known if any coordinator knows it; unknown only if all have answered."""
        request = ask.DescribeFiles(keys)
        answers: list[list[DescribeFileResult]] = await asyncio.gather(
            *(
                self._coordinators.submit(coordinator_id, request)
                for coordinator_id in self._coordinators.all()
            )
        )
        results = []
        for index in range(len(keys)):
            known = [answer[index] for answer in answers if not answer[index].error]
            live = any(one.has_live_batches for one in known)
            pinned = any(one.pinned for one in known)
            code = ErrorCode.NONE if known else ErrorCode.RESOURCE_NOT_FOUND
            results.append(DescribeFileResult(code, live, pinned))
        return results

    async def files_to_delete(self, marked_before_ms: int, limit: int) -> list[str]:
        """A coordinator that cannot answer now delays only its own files."""
        deletable: dict[str, int] = {}
        for coordinator_id in self._coordinators.led():
            try:
                await self._take_unclaimed(coordinator_id, marked_before_ms)
                request = ask.FreeFiles(marked_before_ms, limit)
                free: list[FileState] = await self._coordinators.find(coordinator_id, request)
            except KafkaError as error:
                _log.debug("files kept for now", coordinator=coordinator_id, why=str(error))
                continue
            for file in free:
                if await self._pass_on(coordinator_id, file, marked_before_ms):
                    deletable[file.object_key] = file.deletable_since_ms
        oldest_first = sorted(deletable, key=lambda key: (deletable[key], key))
        return oldest_first[: limit or None]

    async def confirm_deleted(self, keys: Sequence[str]) -> None:
        """Only the last owner forgets the file: only it was told to delete the object."""
        for coordinator_id in self._coordinators.led():
            files: list[FileState | None] = await self._coordinators.find(
                coordinator_id, ask.FindFiles(keys)
            )
            gone = [
                file.object_key
                for file in files
                if file
                and file.is_had_by(coordinator_id)
                and file.coordinator_ids[-1] == coordinator_id
            ]
            if gone:
                await self._coordinators.find(coordinator_id, ask.ForgetFiles(gone))

    async def _pass_on(self, coordinator_id: int, file: FileState, marked_before_ms: int) -> bool:
        """Hand on a free file, as far as possible; True if the last owner may delete it.

        A next owner that is led elsewhere continues by itself.
        """
        key, coordinators = file.object_key, self._coordinators
        try:
            for heir in file.coordinator_ids[file.coordinator_ids.index(coordinator_id) + 1 :]:
                await coordinators.submit(heir, ask.ReceiveFile(file))
                await coordinators.find(coordinator_id, ask.ForgetFiles([key]))
                if heir not in coordinators.led():
                    return False
                (inherited,) = await coordinators.find(heir, ask.FindFiles([key]))
                if inherited is None or inherited.live_batches:
                    return False
                if inherited.deletable_since_ms >= marked_before_ms:
                    return False
                coordinator_id = heir
        except KafkaError as error:
            _log.debug("file kept for now", object_key=key, why=str(error))
            return False
        return True

    async def _take_unclaimed(self, coordinator_id: int, marked_before_ms: int) -> None:
        """Take over files that their earlier owners never knew, and can no longer get."""
        waiting: list[FileState] = await self._coordinators.find(
            coordinator_id, ask.FreeFiles(marked_before_ms, 0, waiting=True)
        )
        for file in await self._unclaimed(coordinator_id, waiting):
            try:
                await self._coordinators.submit(
                    coordinator_id, ask.ReceiveFile(file, unclaimed=True)
                )
            except KafkaError as error:
                _log.debug("file kept for now", object_key=file.object_key, why=str(error))

    async def _unclaimed(self, coordinator_id: int, files: Sequence[FileState]) -> list[FileState]:
        """Those that no earlier owner knows."""
        claimed: set[str] = set()
        by_owner: dict[int, list[str]] = {}
        for file in files:
            for owner in file.coordinator_ids[: file.coordinator_ids.index(coordinator_id)]:
                by_owner.setdefault(owner, []).append(file.object_key)
        for owner, keys in by_owner.items():
            try:
                answers: list[DescribeFileResult] = await self._coordinators.submit(
                    owner, ask.DescribeFiles(keys)
                )
            except KafkaError:  # this owner may know them
                claimed.update(keys)
                continue
            claimed.update(
                key
                for key, answer in zip(keys, answers, strict=True)
                if answer.error is not ErrorCode.RESOURCE_NOT_FOUND
            )
        return [file for file in files if file.object_key not in claimed]
