"""Real object-storage servers for the contract suite; ``make interop`` installs them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.ports import free_port

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skylog"
BUCKET = "skylog-tests"
# The account that every Azurite has.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
START_SECONDS_MAX = 60


def program(name: str) -> str:
    path = CACHE / name
    if not path.exists():
        pytest.skip(f"no {name}: run make interop")
    return str(path)


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[None]:
    """A server that listens on ``port`` until the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent)
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not answers(port):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{command[0]} does not start: {log.read_text()}"
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def versitygw(folder: Path) -> Iterator[dict[str, str]]:
    """An S3 server over a directory; yields the settings to connect to it."""
    port = free_port()
    data, meta = folder / "data", folder / "meta"
    (data / BUCKET).mkdir(parents=True)
    meta.mkdir()
    command = [program("versitygw"), "--port", f"127.0.0.1:{port}", "--access", "tester"]
    command += ["--secret", "testsecret", "--quiet", "posix", "--sidecar", str(meta), str(data)]
    with running(command, port, folder / "log"):
        yield {
            "diskless.storage.url": f"s3://{BUCKET}",
            "diskless.storage.s3.endpoint": f"http://127.0.0.1:{port}",
            "diskless.storage.s3.region": "us-east-1",
            "diskless.storage.s3.access.key.id": "tester",
            "diskless.storage.s3.secret.access.key": "testsecret",
        }


@contextmanager
def azurite(folder: Path) -> Iterator[dict[str, str]]:
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}"
    command = [program("azurite/node_modules/.bin/azurite-blob"), "--blobPort", str(port)]
    command += ["--silent", "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck"]
    with running(command, port, folder / "log"):
        create_container(endpoint)
        yield {
            "diskless.storage.url": f"az://{BUCKET}",
            "diskless.storage.azure.endpoint": endpoint,
            "diskless.storage.azure.account.name": AZURITE_ACCOUNT,
            "diskless.storage.azure.account.key": AZURITE_KEY,
        }


def create_container(endpoint: str) -> None:
    """A signed request, by the rules of the Blob service's shared keys."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in sorted(headers.items()))]
    lines += [f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{BUCKET}", "restype:container"]
    digest = hmac.digest(base64.b64decode(AZURITE_KEY), "\n".join(lines).encode(), hashlib.sha256)
    signature = base64.b64encode(digest).decode()
    headers["Authorization"] = f"SharedKey {AZURITE_ACCOUNT}:{signature}"
    request = urllib.request.Request(
        f"{endpoint}/{BUCKET}?restype=container", method="PUT", headers=headers
    )
    urllib.request.urlopen(request, timeout=30).close()


SERVERS = {"s3": versitygw, "azure": azurite}
