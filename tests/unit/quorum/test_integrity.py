"""A damaged metadata log is not opened; a torn one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import StorageError
from skylog.quorum.log import MetadataLogConfig
from skylog.wire.batch import split_batches
from tests.unit.quorum.support import Rig, started, tree, value

BATCHES = 8


async def filled(directory: Path, **options: object) -> Path:
    """A closed log of the first batch, with the voters, and eight more."""
    rig = await started(directory, **options)
    for number in range(BATCHES):
        await rig.commit([value(number), value(number)])
    await rig.node.close()
    return rig.storage.metadata_log / f"{0:020d}.log"


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


async def test_every_flipped_byte_before_the_last_batch_is_found(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    whole = path.read_bytes()
    sizes = [batch.size for batch in split_batches(whole)]
    for position in range(0, len(whole) - sizes[-1], 5):
        within = position
        for size in sizes:
            if within < size:
                break
            within -= size
        if 12 <= within < 16:
            continue  # the checksum does not cover the epoch of a batch
        flip(path, position)
        before = tree(tmp_path)
        with pytest.raises(StorageError, match="is damaged at position"):
            await Rig(tmp_path).node.start()
        assert tree(tmp_path) == before
        path.write_bytes(whole)
    assert len(await (await started(tmp_path)).values()) == 2 * BATCHES


async def test_a_torn_unsynced_end_is_truncated(tmp_path: Path) -> None:
    path = await filled(tmp_path)
    last = list(split_batches(path.read_bytes()))[-1].size
    flip(path, path.stat().st_size - last // 2)
    assert len(await (await started(tmp_path)).values()) == 2 * (BATCHES - 1)


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\x02" * 300, b"\0\0" * 8 + b"\x02" * 100])
async def test_garbage_after_the_end_is_truncated(tmp_path: Path, tail: bytes) -> None:
    path = await filled(tmp_path)
    path.write_bytes(path.read_bytes() + tail)
    assert len(await (await started(tmp_path)).values()) == 2 * BATCHES


async def test_a_broken_segment_before_another_is_found(tmp_path: Path) -> None:
    config = MetadataLogConfig(segment_bytes=300)
    path = await filled(tmp_path, config=config)
    flip(path, path.stat().st_size - 5)
    with pytest.raises(StorageError, match="is damaged at position"):
        await Rig(tmp_path, config=config).node.start()


async def test_a_missing_segment_is_not_passed_over(tmp_path: Path) -> None:
    config = MetadataLogConfig(segment_bytes=300)
    path = await filled(tmp_path, config=config)
    segments = sorted(path.parent.glob("*.log"))
    assert len(segments) > 3
    segments[1].unlink()
    with pytest.raises(StorageError):
        await Rig(tmp_path, config=config).node.start()
