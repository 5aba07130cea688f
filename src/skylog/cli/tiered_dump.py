"""``skylog tiered dump``."""

from __future__ import annotations

import asyncio
import json as json_module
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.cli.dump import show_row
from skylog.cli.dump_files import DumpSettings, dump_file
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Json
from skylog.cli.output import print_json
from skylog.cli.server import Override
from skylog.cli.tiered_store import (
    RemoteStoreOptions,
    ServerConfig,
    StorageUrl,
    opened_remote,
)
from skylog.kernel.limits import REMOTE_INDEX_BYTES_MAX, REMOTE_MANIFEST_BYTES_MAX

if TYPE_CHECKING:
    from skylog.tiered.layout.manifest import Manifest

_MANIFEST: Final = ".rsm-manifest"
_INDEXES: Final = ".indexes"
_EPOCHS: Final = ".leader_epoch_checkpoint"
# What the indexes are called in a log directory.
_FILES: Final = {
    "offset": "{:020d}.index",
    "timestamp": "{:020d}.timeindex",
    "producerSnapshot": "{:020d}.snapshot",
    "leaderEpoch": "leader-epoch-checkpoint",
    "transaction": "{:020d}.txnindex",
}
Read = Callable[[str, int], Awaitable[bytes]]


def dump(
    target: Annotated[
        str,
        typer.Argument(
            metavar="KEY|FILE",
            help="An object of a remote segment: its manifest (.rsm-manifest), its indexes "
            "(.indexes) or its log (.log); a file of the layout of LocalTieredStorage.",
        ),
    ],
    server_config: ServerConfig = None,
    override: Override = None,
    storage_url: StorageUrl = None,
    json: Json = False,
) -> None:
    """Decode an object of a remote segment, from a file or from the store.

    Checksums, offsets and indexes are verified; the exit code is 1 if anything is wrong. A log is
    shown by its batches: `skylog dump FILE` shows records.
    """
    options = RemoteStoreOptions(server_config, override, storage_url)
    if options.given:
        faults = asyncio.run(_of_store(options, target, json=json))
    else:
        if not Path(target).is_file():
            raise CommandError(
                f"{target} is not a file; for a key, say where the store is: --storage-url"
            )
        faults = asyncio.run(_dump(target, _read_file, json=json))
    if faults:
        raise CommandError(f"{counted(faults, 'fault')} found, see `fault` above")


async def _read_file(name: str, bytes_max: int) -> bytes:
    return _contents(Path(name), bytes_max)


def _contents(path: Path, bytes_max: int) -> bytes:
    try:
        if path.stat().st_size > bytes_max:
            raise CommandError(f"{path} is larger than {bytes_max:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


async def _of_store(options: RemoteStoreOptions, key: str, *, json: bool) -> int:
    from skylog.objects.keys import ObjectKey  # noqa: PLC0415 - not needed for --help
    from skylog.objects.store import NotFound  # noqa: PLC0415

    async with opened_remote(options) as storage:

        async def read(name: str, bytes_max: int) -> bytes:
            parsed = ObjectKey.parse(name)
            try:
                size = (await storage.store.head(parsed)).size
                if size > bytes_max:
                    raise CommandError(f"{name} is larger than {bytes_max:,} bytes")
                return bytes(await storage.store.get(parsed, 0, size))
            except NotFound:
                raise CommandError(
                    f"{name} is not in the store; `skylog tiered segments TOPIC` lists what is"
                ) from None

        return await _dump(key, read, json=json)


async def _dump(name: str, read: Read, *, json: bool) -> int:
    """Show one object; returns how many faults it has."""
    if name.endswith(_MANIFEST):
        manifest = await _manifest(name, read)
        print_json(_manifest_json(manifest))
        return 0
    if name.endswith(_INDEXES):
        manifest = await _manifest(name.removesuffix(_INDEXES) + _MANIFEST, read)
        whole = await read(name, REMOTE_INDEX_BYTES_MAX)
        return _show_indexes(name, manifest, whole, json=json)
    data = await read(name, 1 << 31)
    if name.endswith(".log") and not _is_plain(name):
        data = await _plain_log(name, data, read)
    return _show_as(name, _file_name(name), data, json=json)


def _is_plain(name: str) -> bool:
    """Whether the layout has logs as they were on disk."""
    return "kafka-tiered-storage/" in name


async def _plain_log(name: str, data: bytes, read: Read) -> bytes:
    """A log of the plugin, whose chunks may be compressed; without its manifest it is taken as
    it is."""
    from skylog.tiered.layout.chunks import BadManifest  # noqa: PLC0415 - not needed for --help
    from skylog.tiered.storage import plain_log  # noqa: PLC0415

    try:
        manifest = await _manifest(name.removesuffix(".log") + _MANIFEST, read)
    except CommandError:
        return data
    try:
        return plain_log(manifest, data)
    except BadManifest as error:
        raise CommandError(f"{name}: {error}") from None


def _file_name(name: str) -> str:
    """As the file is called in a log directory; its segment's id is left out."""
    last = name.rsplit("/", 1)[-1]
    if last.endswith(_EPOCHS):
        return _FILES["leaderEpoch"]
    offset, suffix = last[:20], last[last.rfind(".") :]
    return f"{offset}{suffix}" if offset.isdigit() else last


async def _manifest(name: str, read: Read) -> Manifest:
    from skylog.tiered.layout.chunks import BadManifest  # noqa: PLC0415 - not needed for --help
    from skylog.tiered.layout.manifest import decode_manifest  # noqa: PLC0415

    try:
        return decode_manifest(await read(name, REMOTE_MANIFEST_BYTES_MAX))
    except BadManifest as error:
        raise CommandError(f"{name}: {error}") from None


def _manifest_json(manifest: Manifest) -> dict[str, Any]:
    from skylog.tiered.layout.manifest import encode_manifest  # noqa: PLC0415

    found: dict[str, Any] = json_module.loads(encode_manifest(manifest))
    chunks = manifest.chunks
    return {**found, "logObjectSize": chunks.object_size, "chunkCount": chunks.count}


def _show_indexes(name: str, manifest: Manifest, whole: bytes, *, json: bool) -> int:
    start = 0 if manifest.segment is None else manifest.segment.start_offset
    faults = 0
    for kind, place in manifest.indexes.items():
        data = whole[place.position : place.position + place.size]
        if len(data) < place.size:
            raise CommandError(f"{name} ends within the {kind.value} index")
        faults += _show_as(name, _FILES[kind.value].format(start), data, json=json)
    return faults


def _show_as(name: str, file_name: str, data: bytes, *, json: bool) -> int:
    """Show bytes as the file of a log directory that they were."""
    faults = 0
    if not json:
        print(f"== {name} ({file_name})")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / file_name
        path.write_bytes(data)
        for row in _rows(path):
            faults += "fault" in row
            show_row(Path(name), row, json=json)
    return faults


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    yield from dump_file(path, DumpSettings(batches_only=True))
