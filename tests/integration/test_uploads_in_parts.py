"""Uploads in parts: what a failed request of one means, and that no part is left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from skylog.kernel.executor import InlineExecutor
from skylog.kernel.settings import load_settings
from skylog.objects.buckets import open_s3
from skylog.objects.keys import ObjectKey
from skylog.objects.metered import MeteredStore
from skylog.objects.remote import RemoteStore
from skylog.objects.retrying import RetryingStore, RetryPolicy
from skylog.objects.store import NotFound, ObjectError, Outcome
from tests.contract.bucket_server import (
    RESET_AFTER,
    RESET_BEFORE,
    Answer,
    BucketServer,
    bucket_server,
    s3_settings,
)
from tests.waiting import eventually

PART = 1024  # our own server takes smaller parts than S3
DATA = random.Random(1).randbytes(2 * PART + 100)
SIZE = len(DATA)
KEY = ObjectKey.named("staging", "segment")
NONE = ""  # not a fault: the request goes through


@pytest.fixture
def server() -> Iterator[BucketServer]:
    with bucket_server() as running:
        yield running


@pytest.fixture
async def store(server: BucketServer) -> AsyncIterator[RemoteStore]:
    settings = load_settings(
        None, {}, [f"{k}={v}" for k, v in s3_settings(server.endpoint).items()]
    )
    opened = RemoteStore(open_s3("tests", "", settings.storage), InlineExecutor(), part_bytes=PART)
    yield opened
    await opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "segment"
    made.write_bytes(DATA)
    return made


# Begin, three parts, complete: five requests.
@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(
    "fault",
    [Answer(500), Answer(503), Answer(403), Answer(404), Answer(409), RESET_BEFORE, RESET_AFTER],
    ids=str,
)
async def test_a_failed_request_leaves_nothing_or_says_that_it_may_have(
    server: BucketServer, store: RemoteStore, path: Path, number: int, fault: Answer | str
) -> None:
    server.fail_next(*[NONE] * number, fault)
    with pytest.raises(ObjectError) as raised:
        await store.put_file(KEY, [path], SIZE)
    if KEY.text in server.objects:
        assert raised.value.kind is Outcome.AMBIGUOUS
        assert server.objects[KEY.text] == DATA
    lost = number == 0 and fault == RESET_AFTER  # its name was never heard
    assert len(server.uploads) == lost
    assert not isinstance(raised.value, NotFound) or number == 0


async def test_an_abort_that_fails_does_not_hide_that_the_upload_may_be_complete(
    server: BucketServer, store: RemoteStore, path: Path
) -> None:
    server.fail_next(*[NONE] * 4, RESET_AFTER, Answer(403))
    with pytest.raises(ObjectError) as raised:
        await store.put_file(KEY, [path], SIZE)
    assert raised.value.kind is Outcome.AMBIGUOUS
    assert server.objects[KEY.text] == DATA


@pytest.mark.parametrize("number", range(5))
async def test_retries_put_the_same_bytes_again(
    server: BucketServer, store: RemoteStore, path: Path, number: int
) -> None:
    server.fail_next(*[NONE] * number, RESET_AFTER)
    retrying = RetryingStore(store, RetryPolicy(pause_seconds=0))
    await retrying.put_file(KEY, [path], SIZE)
    assert server.objects[KEY.text] == DATA


async def test_a_cancelled_upload_is_aborted(
    server: BucketServer, store: RemoteStore, tmp_path: Path
) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(500 * PART))
    putting = asyncio.ensure_future(store.put_file(KEY, [path], 500 * PART))
    await eventually(lambda: any(len(parts) > 2 for parts in server.uploads.values()))
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    await eventually(lambda: not server.uploads)
    assert server.objects == {}
    assert len(server.requests) < 500


async def test_every_request_of_an_upload_is_counted(
    server: BucketServer, store: RemoteStore, path: Path
) -> None:
    metered = MeteredStore(store)
    await metered.put_file(KEY, [path], SIZE)
    assert metered.stats.operations["put"].requests == len(server.requests) == 5
    assert metered.stats.bytes_written == SIZE
    await metered.put_file(KEY, [b"small"], 5)
    assert metered.stats.operations["put"].requests == len(server.requests) == 6
