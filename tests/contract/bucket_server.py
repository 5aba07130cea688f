"""A small bucket over HTTP, for S3's and Google's XML APIs, that fails on command.

``fail_next`` queues what happens to the next requests: a status, or a broken connection before or
after the effect.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

RESET_BEFORE = "reset before the effect"
RESET_AFTER = "reset after the effect"
TRUNCATED = "half of the body"
PAGE = 100


@dataclass(frozen=True)
class Answer:
    """A status to return without any effect."""

    status: int
    body: bytes = b""


@dataclass
class BucketServer:
    """The objects, and the failures to come."""

    objects: dict[str, bytes] = field(default_factory=dict)
    faults: deque[Answer | str] = field(default_factory=deque)
    requests: list[str] = field(default_factory=list)
    # Multipart uploads that were neither completed nor aborted: parts by number.
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    keys_seen: list[str] = field(default_factory=list)  # access key ids that signed
    lock: threading.Lock = field(default_factory=threading.Lock)
    endpoint: str = ""

    def fail_next(self, *faults: Answer | str) -> None:
        self.faults.extend(faults)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    bucket: BucketServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        key = unquote(url.path).lstrip("/").partition("/")[2]
        with self.bucket.lock:
            self.bucket.requests.append(f"{self.command} {key}")
            signed = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization") or "")
            if signed:
                self.bucket.keys_seen.append(signed[1])
            fault = self.bucket.faults.popleft() if self.bucket.faults else None
            if isinstance(fault, Answer):
                return self._answer(fault.status, fault.body)
            if fault == RESET_BEFORE:
                return self._reset()
            status, headers, answer = self._do(key, parse_qs(url.query, True), body)
        if fault == RESET_AFTER:
            return self._reset()
        return self._answer(status, answer, headers, truncated=fault == TRUNCATED)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _do(
        self, key: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        objects = self.bucket.objects
        if "uploads" in query or "uploadId" in query:
            return self._multipart(key, query, body)
        match self.command:
            case "PUT":
                create = self.headers.get("If-None-Match") == "*"
                create |= self.headers.get("x-goog-if-generation-match") == "0"
                if create and key in objects:
                    return 412, {}, b"<Error><Code>PreconditionFailed</Code></Error>"
                objects[key] = body
                return 200, {"ETag": '"tag"'}, b""
            case "DELETE":
                found = objects.pop(key, None)
                return (404 if found is None else 204), {}, b""
            case "POST":
                names = re.findall(r"<Key>(.*?)</Key>", body.decode())
                for name in names:
                    objects.pop(name, None)
                deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
                return 200, {}, f"<DeleteResult>{deleted}</DeleteResult>".encode()
            case _:
                return self._list(query) if not key else self._read(key)

    def _multipart(
        self, key: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        uploads = self.bucket.uploads
        if "uploads" in query:
            upload = f"upload-{len(self.bucket.requests)}"
            uploads[upload] = {}
            root = "InitiateMultipartUploadResult"
            return 200, {}, f"<{root}><UploadId>{upload}</UploadId></{root}>".encode()
        upload = query["uploadId"][0]
        if upload not in uploads:
            return 404, {}, b"<Error><Code>NoSuchUpload</Code></Error>"
        match self.command:
            case "PUT":
                uploads[upload][int(query["partNumber"][0])] = body
                return 200, {"ETag": '"part"'}, b""
            case "DELETE":
                del uploads[upload]
                return 204, {}, b""
            case _:
                parts = uploads.pop(upload)
                named = [int(n) for n in re.findall(r"<PartNumber>(\d+)<", body.decode())]
                self.bucket.objects[key] = b"".join(parts[number] for number in named)
                root = "CompleteMultipartUploadResult"
                return 200, {}, f'<{root}><ETag>"tag"</ETag></{root}>'.encode()

    def _read(self, key: str) -> tuple[int, dict[str, str], bytes]:
        data = self.bucket.objects.get(key)
        if data is None:
            return 404, {}, b"<Error><Code>NoSuchKey</Code></Error>"
        headers = {"ETag": '"tag"', "Last-Modified": "Tue, 02 Jan 2024 03:04:05 GMT"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not wanted:
            return 200, headers, data
        start = int(wanted[1])
        if start >= len(data):
            return 416, {}, b"<Error><Code>InvalidRange</Code></Error>"
        end = min(int(wanted[2] or len(data)), len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
        return 206, headers, data[start : end + 1]

    def _list(self, query: dict[str, list[str]]) -> tuple[int, dict[str, str], bytes]:
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        names = sorted(n for n in self.bucket.objects if n.startswith(prefix) and n > after)
        page = names[:PAGE]
        items = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2024-01-02T03:04:05.000Z"
            f'</LastModified><ETag>"tag"</ETag><Size>{len(self.bucket.objects[name])}</Size>'
            "</Contents>"
            for name in page
        )
        more = (
            f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
            if len(names) > PAGE
            else ""
        )
        return 200, {}, f"<ListBucketResult>{items}{more}</ListBucketResult>".encode()

    def _answer(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        *,
        truncated: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if truncated else body)
        if truncated:
            self.close_connection = True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that disconnect are part of the tests."""


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    bucket = BucketServer()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = _Server(("127.0.0.1", 0), handler)
    bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield bucket
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def s3_settings(endpoint: str) -> dict[str, str]:
    return {
        "diskless.storage.url": "s3://tests",
        "diskless.storage.s3.endpoint": endpoint,
        "diskless.storage.s3.region": "us-east-1",
        "diskless.storage.s3.access.key.id": "tester",
        "diskless.storage.s3.secret.access.key": "testsecret",
    }


def gcs_settings(endpoint: str) -> dict[str, str]:
    return {"diskless.storage.url": "gs://tests", "diskless.storage.gcs.endpoint": endpoint}
