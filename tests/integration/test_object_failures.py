"""The meaning of a bucket's responses, one line each, over real connections."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from obstore.store import S3Store

from skylog.kernel.errors import StorageError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.settings import load_settings
from skylog.objects.buckets import open_s3
from skylog.objects.credentials import (
    ASKED_BEFORE_EXPIRY,
    file_credentials,
    read_credentials,
)
from skylog.objects.keys import ObjectKey
from skylog.objects.open import open_store
from skylog.objects.remote import RemoteStore
from skylog.objects.retrying import RetryingStore, RetryPolicy
from skylog.objects.store import Exists, NotFound, ObjectError, Outcome
from tests.contract.bucket_server import (
    RESET_AFTER,
    RESET_BEFORE,
    TRUNCATED,
    Answer,
    BucketServer,
    bucket_server,
    s3_settings,
)
from tests.ports import free_port

if TYPE_CHECKING:
    from obstore.store import S3Credential

NOT_DONE, AMBIGUOUS, REFUSED = Outcome.NOT_DONE, Outcome.AMBIGUOUS, Outcome.REFUSED
KEY = ObjectKey.named("staging", "table")
SLOW_DOWN = b"<Error><Code>SlowDown</Code></Error>"
CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code></Error>"

# The failure; then the outcome of a write and of a read.
TABLE: list[tuple[str, Answer | str, Outcome, Outcome]] = [
    ("400", Answer(400), REFUSED, REFUSED),
    ("400 time-out", Answer(400, b"<Code>RequestTimeout</Code>"), NOT_DONE, NOT_DONE),
    ("401", Answer(401), REFUSED, REFUSED),
    ("403", Answer(403), REFUSED, REFUSED),
    ("404", Answer(404), REFUSED, REFUSED),
    ("408", Answer(408), AMBIGUOUS, NOT_DONE),
    ("409", Answer(409, CONFLICT), NOT_DONE, REFUSED),
    ("412", Answer(412), NOT_DONE, REFUSED),
    ("429", Answer(429), NOT_DONE, NOT_DONE),
    ("500", Answer(500), AMBIGUOUS, NOT_DONE),
    ("502", Answer(502), AMBIGUOUS, NOT_DONE),
    ("503 of a gateway", Answer(503), AMBIGUOUS, NOT_DONE),
    ("503 slow down", Answer(503, SLOW_DOWN), NOT_DONE, NOT_DONE),
    ("504", Answer(504), AMBIGUOUS, NOT_DONE),
    (RESET_BEFORE, RESET_BEFORE, AMBIGUOUS, NOT_DONE),
    (RESET_AFTER, RESET_AFTER, AMBIGUOUS, NOT_DONE),
]
NAMES = [row[0] for row in TABLE]


@pytest.fixture
def server() -> Iterator[BucketServer]:
    with bucket_server() as running:
        yield running


def remote(overrides: dict[str, str]) -> RemoteStore:
    settings = load_settings(None, {}, [f"{name}={text}" for name, text in overrides.items()])
    return RemoteStore(open_s3("tests", "", settings.storage), InlineExecutor())


@pytest.fixture
async def store(server: BucketServer) -> AsyncIterator[RemoteStore]:
    yield remote(s3_settings(server.endpoint))


async def outcome(work: Callable[[], Awaitable[object]]) -> ObjectError:
    with pytest.raises(ObjectError) as raised:
        await work()
    return raised.value


async def listing(store: RemoteStore) -> list[object]:
    return [info async for info in store.list("staging/")]


@pytest.mark.parametrize(("name", "fault", "write", "read"), TABLE, ids=NAMES)
class TestTable:
    async def test_put(
        self,
        server: BucketServer,
        store: RemoteStore,
        name: str,
        fault: Answer | str,
        write: Outcome,
        read: Outcome,
    ) -> None:
        server.fail_next(fault)
        error = await outcome(lambda: store.put(KEY, b"data"))
        assert error.kind is write
        assert error.throttled == name.startswith(("429", "503"))
        assert isinstance(error, NotFound) == (name == "404")
        assert (KEY.text in server.objects) == (fault == RESET_AFTER)

    async def test_get_head_and_list(
        self,
        server: BucketServer,
        store: RemoteStore,
        name: str,
        fault: Answer | str,
        write: Outcome,
        read: Outcome,
    ) -> None:
        server.objects[KEY.text] = b"data"
        for work in (
            lambda: store.get(KEY),
            lambda: store.get(KEY, 1, 3),
            lambda: store.head(KEY),
            lambda: listing(store),
        ):
            # An error response to HEAD has no body.
            bare = Answer(fault.status) if isinstance(fault, Answer) else fault
            expected = REFUSED if name == "400 time-out" else read
            server.fail_next(bare)
            error = await outcome(work)
            assert error.kind is expected
            assert isinstance(error, NotFound) == (name == "404")

    async def test_delete(
        self,
        server: BucketServer,
        store: RemoteStore,
        name: str,
        fault: Answer | str,
        write: Outcome,
        read: Outcome,
    ) -> None:
        if name == "404":
            pytest.skip("absent is done; a missing bucket has its own test")
        server.objects[KEY.text] = b"data"
        server.fail_next(fault)
        error = await outcome(lambda: store.delete_many([KEY]))
        assert error.kind is (REFUSED if name in ("409", "412") else write)
        assert (KEY.text in server.objects) == (fault != RESET_AFTER)


async def test_a_conflict_without_an_object_is_not_done(
    server: BucketServer, store: RemoteStore
) -> None:
    """409 decides nothing: neither "exists" nor success."""
    server.fail_next(Answer(409, CONFLICT))
    error = await outcome(lambda: store.put(KEY, b"mine", if_absent=True))
    assert error.kind is NOT_DONE
    assert not isinstance(error, Exists)


@pytest.mark.parametrize("status", [409, 412])
async def test_a_conflict_with_our_own_bytes_is_success(
    server: BucketServer, store: RemoteStore, status: int
) -> None:
    server.objects[KEY.text] = b"mine"
    server.fail_next(Answer(status))
    await store.put(KEY, b"mine", if_absent=True)


@pytest.mark.parametrize("status", [409, 412])
async def test_a_conflict_with_other_bytes_is_exists(
    server: BucketServer, store: RemoteStore, status: int
) -> None:
    server.objects[KEY.text] = b"them"
    server.fail_next(Answer(status))
    assert isinstance(await outcome(lambda: store.put(KEY, b"mine", if_absent=True)), Exists)


async def test_a_conflict_that_cannot_be_read_is_ambiguous(
    server: BucketServer, store: RemoteStore
) -> None:
    server.fail_next(Answer(412), Answer(500))
    error = await outcome(lambda: store.put(KEY, b"mine", if_absent=True))
    assert error.kind is AMBIGUOUS


async def test_a_refused_connection_is_not_done() -> None:
    store = remote(s3_settings(f"http://127.0.0.1:{free_port()}"))
    assert (await outcome(lambda: store.put(KEY, b"data"))).kind is NOT_DONE


async def test_no_answer_in_time_is_ambiguous(server: BucketServer) -> None:
    store = remote({**s3_settings(server.endpoint), "diskless.storage.request.timeout.ms": "200"})
    with server.lock:  # the server reads the request and gets no further
        assert (await outcome(lambda: store.put(KEY, b"data"))).kind is AMBIGUOUS


async def test_a_body_that_ends_early_is_not_done(server: BucketServer, store: RemoteStore) -> None:
    server.objects[KEY.text] = b"0123456789"
    server.fail_next(TRUNCATED, TRUNCATED)
    assert (await outcome(lambda: store.get(KEY))).kind is NOT_DONE
    assert (await outcome(lambda: store.get(KEY, 2, 9))).kind is NOT_DONE


async def test_a_missing_bucket_is_not_a_deletion(server: BucketServer, store: RemoteStore) -> None:
    server.fail_next(Answer(404, b"<Error><Code>NoSuchBucket</Code></Error>"))
    assert isinstance(await outcome(lambda: store.delete_many([KEY])), NotFound)


@pytest.mark.parametrize("if_absent", [False, True])
@pytest.mark.parametrize(
    "fault",
    [RESET_BEFORE, RESET_AFTER, Answer(500), Answer(503, SLOW_DOWN), Answer(409, CONFLICT)],
    ids=str,
)
async def test_retries_settle_what_a_put_left_open(
    server: BucketServer, store: RemoteStore, fault: Answer | str, if_absent: bool
) -> None:
    server.fail_next(fault)
    policy = RetryPolicy(pause_seconds=0.001)
    await RetryingStore(store, policy, rng=random.Random(1)).put(KEY, b"mine", if_absent=if_absent)
    assert server.objects == {KEY.text: b"mine"}


async def test_the_library_does_not_retry_by_itself(
    server: BucketServer, store: RemoteStore
) -> None:
    server.fail_next(Answer(503, SLOW_DOWN))
    await outcome(lambda: store.put(KEY, b"data"))
    assert server.requests == [f"PUT {KEY}"]


def write_credentials(path: Path, key: str) -> None:
    path.write_text(
        f"[other]\naws_access_key_id = no\n[main]\naws_access_key_id = {key}\n"
        f"aws_secret_access_key = secret%of{key}\n"
    )


async def test_credentials_from_a_file_are_reloaded(server: BucketServer, tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    write_credentials(path, "first")
    overrides = s3_settings(server.endpoint)
    del overrides["diskless.storage.s3.access.key.id"]
    overrides["diskless.storage.s3.credentials.file"] = str(path)
    overrides["diskless.storage.s3.credentials.profile"] = "main"
    settings = load_settings(None, {}, [f"{name}={text}" for name, text in overrides.items()])
    await open_store("s3://tests", settings.storage).put(KEY, b"1")
    assert server.keys_seen == ["first"]

    provide = file_credentials(path, "main", 60_000)
    write_credentials(path, "second")
    renewed = provide()
    assert (renewed["access_key_id"], renewed["secret_access_key"]) == ("second", "secret%ofsecond")
    path.unlink()  # while it is being replaced, the last ones are used
    assert provide()["access_key_id"] == "second"


async def test_expired_credentials_are_renewed(
    server: BucketServer,
) -> None:
    """The library reloads as early as ``ASKED_BEFORE_EXPIRY``, so the test controls it."""
    given: list[str] = []

    def provide() -> S3Credential:
        given.append("key")
        expires_at = datetime.now(UTC) + ASKED_BEFORE_EXPIRY + timedelta(seconds=3)
        return {"access_key_id": "k", "secret_access_key": "s", "expires_at": expires_at}

    bucket = S3Store(
        "tests",
        endpoint=server.endpoint,
        region="us-east-1",
        client_options={"allow_http": True},
        credential_provider=provide,
    )
    store = RemoteStore(bucket, InlineExecutor())
    await store.put(KEY, b"1")
    await store.put(KEY, b"1")
    assert len(given) == 1
    deadline = time.monotonic() + 60
    while len(given) == 1:
        await store.put(KEY, b"1")
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    "text", ["", "[main]\n", "[other]\naws_access_key_id=a\n", "no section", "[main]\n\0=\xff"]
)
def test_a_file_without_credentials_says_so_without_showing_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "credentials"
    path.write_text(text + "\n#canary", encoding="latin-1")
    with pytest.raises(StorageError, match="credentials") as raised:
        read_credentials(path, "main")
    assert "canary" not in str(raised.value)


async def test_errors_do_not_show_secrets(server: BucketServer, store: RemoteStore) -> None:
    server.fail_next(Answer(403))
    error = await outcome(lambda: store.put(KEY, b"data"))
    assert "testsecret" not in f"{error} {error!r} {error.__cause__} {error.__cause__!r}"
