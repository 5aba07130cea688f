"""Kafka and our controller get the same requests in the same order, and must answer alike.

Everything that a client acts on is compared: codes, names, counts, configs. Ids, epochs, wording
and the order of lists may differ.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.handlers.security import describe_acls
from skylog.broker.metadata.controller_configs import ControllerConfigs
from skylog.controller.image import ClusterImage
from skylog.controller.quotas import describe_client_quotas
from skylog.controller.scram import describe_user_scram_credentials
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.settings import load_settings
from skylog.security.authorizer import Authorizer
from skylog.wire.apis import encode_request_header, response_class, response_header_version
from skylog.wire.codec import decode, encode
from skylog.wire.messages.describe_acls_request import DescribeAclsRequest
from skylog.wire.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from skylog.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from skylog.wire.schema import Message, Struct
from tests.interop.controller_questions import QUESTIONS
from tests.interop.wire import OUR_SETTINGS
from tests.ports import free_port
from tests.unit.controller.support import Bench

pytestmark = pytest.mark.interop

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
LEVELS = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
NOT_COMPARED = {"throttle_time_ms", "topic_id"}


def java(main_class: str, *arguments: str) -> list[str]:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    jars = os.environ.get("SKYLOG_KAFKA_JARS", str(cache / "skylog" / "kafka-4.3.1" / "lib"))
    level = "-Dorg.apache.logging.log4j.level=INFO"
    return ["java", "-Xmx512m", level, "-cp", f"{jars}/*", main_class, *arguments]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    """A connection to a Kafka of one node that allows everything."""
    place = tmp_path_factory.mktemp("kafka")
    ports = free_port(), free_port()
    config = place / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        f"listeners=PLAINTEXT://localhost:{ports[0]},CONTROLLER://localhost:{ports[1]}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=localhost:{ports[1]}\n"
        f"log.dirs={place / 'data'}\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        "super.users=User:ANONYMOUS\n"
    )
    formatting = ("format", "--standalone", "-t", CLUSTER, "-c", str(config))
    formatted = subprocess.run(
        java("kafka.tools.StorageTool", *formatting), capture_output=True, timeout=100, check=False
    )
    assert formatted.returncode == 0, formatted.stdout
    server = subprocess.Popen(
        java("kafka.Kafka", str(config)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = server.stdout
    assert output is not None
    # A full pipe would block Kafka.
    reader = threading.Thread(target=output.read)
    try:
        said = list(itertools.takewhile(lambda line: "Kafka Server started" not in line, output))
        assert server.poll() is None, "".join(said[-20:])
        reader.start()
        with socket.create_connection(("localhost", ports[0]), timeout=60) as connection:
            yield connection
    finally:
        server.terminate()
        server.wait(timeout=60)
        if reader.ident is not None:
            reader.join()
        output.close()


def ask_kafka(connection: socket.socket, message: Message, version: int) -> Message:
    head = encode_request_header(message.API_KEY, version, 1, "test")
    body = head + encode(message, version)
    connection.sendall(struct.pack(">i", len(body)) + body)
    (size,) = struct.unpack(">i", receive(connection, 4))
    frame = receive(connection, size)
    start = 4 + response_header_version(message.API_KEY, version)
    return decode(response_class(message.API_KEY), frame, version, start)


def receive(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        assert more, "Kafka closed the connection"
        found += more
    return found


def comparable(value: Any) -> Any:
    if isinstance(value, Struct):
        names = (field.name for field in value.FIELDS)
        found = {n: comparable(getattr(value, n)) for n in names if n not in NOT_COMPARED}
        if found.get("error_message"):
            found["error_message"] = "in words of its own"
        return found
    if isinstance(value, list):
        kept = (one for one in value if getattr(one, "name", None) not in OUR_SETTINGS)
        return sorted((comparable(one) for one in kept), key=repr)
    return int(value) if isinstance(value, int) else value


def codes(value: Any) -> set[int]:
    """All error codes in a response; a request that failed as a whole has one."""
    if isinstance(value, dict):
        own = {value["error_code"]} if "error_code" in value else set()
        return own.union(*(codes(one) for one in value.values()))
    if isinstance(value, list):
        return set().union(*(codes(one) for one in value))
    return set()


def shown(message: Message, version: int) -> Any:
    """A response as its version transmits it."""
    return comparable(decode(type(message), encode(message, version), version))


def described_acls(image: ClusterImage, message: DescribeAclsRequest) -> Message:
    authorizer = Authorizer()
    for number, acl in enumerate(image.acl_bindings()):
        authorizer.add(Uuid(number.to_bytes(16, "big")), acl)
    context: Any = SimpleNamespace(services=SimpleNamespace(authorizer=authorizer))
    return describe_acls(context, message)


# Requests that brokers answer from their own metadata.
DESCRIBED: Mapping[type[Message], Callable[[ClusterImage, Any], Message]] = {
    DescribeAclsRequest: described_acls,
    DescribeUserScramCredentialsRequest: describe_user_scram_credentials,
    DescribeClientQuotasRequest: describe_client_quotas,
}


def answered(bench: Bench, message: Message, version: int) -> Any:
    describe = DESCRIBED.get(type(message))
    return bench.ask(message, version) if describe is None else describe(bench.image, message)


def test_our_answers_are_kafkas(kafka: socket.socket) -> None:
    bench = Bench(brokers=1, levels=LEVELS, configs=ControllerConfigs(load_settings))
    different = []
    for message, asked_version in QUESTIONS:
        version = message.VERSIONS.high if asked_version is None else asked_version
        expected = comparable(ask_kafka(kafka, message, version))
        try:
            found = shown(answered(bench, message, version), version)
        except KafkaError as error:
            found, expected = {int(error.code)}, codes(expected) - {0}
        if found != expected:
            different.append(f"{message}\n  Kafka: {expected}\n  we:    {found}")
    assert not different, "\n".join(different)
