"""Record a broker's responses about settings: the golden file of tests/golden/configs.

    python tools/dump_config_answers.py HOST:PORT > tests/golden/configs/answers.json

The broker is a fresh Kafka with node id 1 that was started with
tests/golden/configs/server.properties (in a directory where ``data`` was formatted). The responses
to DescribeConfigs and the errors of IncrementalAlterConfigs are written as JSON.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from typing import Any

from skylog.wire.apis import (
    ApiKey,
    request_header_version,
    response_class,
    response_header_version,
)
from skylog.wire.codec import decode_at, encode
from skylog.wire.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.request_header import RequestHeader
from skylog.wire.messages.response_header import ResponseHeader
from skylog.wire.schema import Message

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

# Settings that are altered before anything is described.
SETUP = [
    (TOPIC, "changed", [("retention.ms", SET, "123456"), ("cleanup.policy", SET, "compact")]),
    (BROKER, "", [("log.retention.ms", SET, "7200000"), ("log.cleaner.threads", SET, "2")]),
    (BROKER, "1", [("log.roll.ms", SET, "18000000"), ("message.max.bytes", SET, "2000000")]),
    (BROKER, "1", [("listener.name.plaintext.max.connections", SET, "100")]),
    (GROUP, "changed", [("consumer.session.timeout.ms", SET, "50000")]),
    (CLIENT_METRICS, "changed", [("interval.ms", SET, "1000")]),
]
DESCRIBED = [
    (TOPIC, "plain"),
    (TOPIC, "changed"),
    (BROKER, "1"),
    (BROKER, ""),
    (GROUP, "plain"),
    (GROUP, "changed"),
    (CLIENT_METRICS, "plain"),
    (CLIENT_METRICS, "changed"),
]
# Changes that are only validated; most are invalid.
TRIED = [
    (TOPIC, "plain", [("no.such", SET, "1")]),
    (TOPIC, "plain", [("retention.ms", SET, "soon")]),
    (TOPIC, "plain", [("retention.ms", SET, " 12 ")]),
    (TOPIC, "plain", [("retention.ms", SET, "-2")]),
    (TOPIC, "plain", [("retention.ms", SET, "9223372036854775808")]),
    (TOPIC, "plain", [("segment.bytes", SET, "10")]),
    (TOPIC, "plain", [("cleanup.policy", SET, "shred")]),
    (TOPIC, "plain", [("cleanup.policy", SET, "delete,delete")]),
    (TOPIC, "plain", [("cleanup.policy", SET, "")]),
    (TOPIC, "plain", [("cleanup.policy", APPEND, "compact")]),
    (TOPIC, "plain", [("cleanup.policy", SUBTRACT, "delete")]),
    (TOPIC, "plain", [("compression.type", SET, "brotli")]),
    (TOPIC, "plain", [("compression.gzip.level", SET, "0")]),
    (TOPIC, "plain", [("compression.gzip.level", SET, "-1")]),
    (TOPIC, "plain", [("min.cleanable.dirty.ratio", SET, "1.5")]),
    (TOPIC, "plain", [("min.cleanable.dirty.ratio", SET, "half")]),
    (TOPIC, "plain", [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")]),
    (TOPIC, "plain", [("preallocate", SET, "yes")]),
    (TOPIC, "plain", [("preallocate", SET, "TRUE")]),
    (TOPIC, "plain", [("remote.storage.enable", SET, "true")]),
    (TOPIC, "plain", [("leader.replication.throttled.replicas", SET, "0:1,a")]),
    (TOPIC, "plain", [("leader.replication.throttled.replicas", SET, "*")]),
    (TOPIC, "plain", [("message.timestamp.type", SET, "Never")]),
    (TOPIC, "plain", [("message.timestamp.before.max.ms", SET, "-1")]),
    (TOPIC, "plain", [("retention.ms", APPEND, "1")]),
    (TOPIC, "plain", [("retention.ms", DELETE, None)]),
    (TOPIC, "plain", [("retention.ms", SET, None)]),
    (BROKER, "1", [("node.id", SET, "5")]),
    (BROKER, "1", [("log.retention.hours", SET, "5")]),
    (BROKER, "1", [("log.retention.ms", SET, "soon")]),
    (BROKER, "1", [("log.retention.ms", SET, "0")]),
    (BROKER, "1", [("ssl.keystore.location", SET, "x")]),
    (BROKER, "1", [("no.such", SET, "x")]),
    (BROKER, "1", [("log.cleanup.policy", APPEND, "compact")]),
    (BROKER, "1", [("log.retention.ms", APPEND, "1")]),
    (BROKER, "1", [("no.such", APPEND, "1")]),
    (BROKER, "", [("cordoned.log.dirs", SET, "x")]),
    (BROKER, "", [("listener.name.plaintext.ssl.keystore.location", SET, "x")]),
    (BROKER, "", [("log.cleaner.dedupe.buffer.size", SET, "1024")]),
    (BROKER, "2", [("log.retention.ms", SET, "1")]),
    (BROKER, "one", [("log.retention.ms", SET, "1")]),
    (BROKER, "", [("leader.replication.throttled.rate", SET, "1000")]),
    (BROKER, "", [("leader.replication.throttled.rate", SET, "-1")]),
    (LOGGER, "1", [("no.such.logger", SET, "INFO")]),
    (LOGGER, "1", [("root", SET, "LOUD")]),
    (LOGGER, "1", [("root", SET, "INFO")]),
    (LOGGER, "1", [("root", DELETE, None)]),
    (LOGGER, "1", [("root", APPEND, "INFO")]),
    (LOGGER, "2", [("root", SET, "INFO")]),
    (LOGGER, "one", [("root", SET, "INFO")]),
    (GROUP, "plain", [("no.such", SET, "1")]),
    (GROUP, "plain", [("consumer.session.timeout.ms", SET, "1")]),
    (GROUP, "plain", [("consumer.session.timeout.ms", SET, "100000")]),
    (GROUP, "plain", [("consumer.heartbeat.interval.ms", SET, "20000")]),
    (GROUP, "plain", [("share.auto.offset.reset", SET, "by_duration:PT1H")]),
    (GROUP, "plain", [("share.auto.offset.reset", SET, "by_duration:1H")]),
    (GROUP, "plain", [("share.delivery.count.limit", SET, "1")]),
    (GROUP, "plain", [("streams.num.standby.replicas", SET, "3")]),
    (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")]),
    (CLIENT_METRICS, "plain", [("no.such", SET, "1")]),
    (CLIENT_METRICS, "plain", [("interval.ms", SET, "1")]),
    (CLIENT_METRICS, "plain", [("interval.ms", SET, "x")]),
    (CLIENT_METRICS, "plain", [("match", SET, "client_id=a.*")]),
    (CLIENT_METRICS, "plain", [("match", SET, "client=a")]),
    (CLIENT_METRICS, "plain", [("match", SET, "client_id=a,client_id=")]),
    (CLIENT_METRICS, "", [("interval.ms", SET, "1000")]),
    (3, "x", [("a", SET, "1")]),
]


class Broker:
    """One connection that sends a request at a time."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))

    def call(self, key: ApiKey, request: Message, version: int) -> Any:
        header = RequestHeader(int(key), version, 1, "golden")
        head = encode(header, request_header_version(key, version))
        frame = head + encode(request, version)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._receive(4))
        answer = self._receive(size)
        _, at = decode_at(ResponseHeader, answer, response_header_version(key, version), 0)
        return decode_at(response_class(key), answer, version, at)[0]

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            data += piece
        return data

    def alter(self, kind: int, name: str, changes: Any, *, validate_only: bool) -> Any:
        configs = [AlterableConfig(*change) for change in changes]
        resource = AlterConfigsResource(kind, name, configs)
        request = IncrementalAlterConfigsRequest([resource], validate_only)
        answer = self.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1).responses[0]
        return answer.error_code, answer.error_message

    def describe(self, kind: int, name: str) -> Any:
        resource = DescribeConfigsResource(kind, name, None)
        request = DescribeConfigsRequest([resource], True, False)
        result = self.call(ApiKey.DESCRIBE_CONFIGS, request, 4).results[0]
        return {entry.name: _shown(entry) for entry in result.configs}


def _shown(entry: Any) -> Any:
    synonyms = [[synonym.name, synonym.value, synonym.source] for synonym in entry.synonyms]
    flags = [entry.read_only, entry.is_sensitive]
    return [entry.value, entry.config_source, entry.config_type, *flags, synonyms]


def main() -> int:
    broker = Broker(sys.argv[1])
    topics = [
        CreatableTopic("plain", 1, 1, [], []),
        CreatableTopic("changed", 1, 1, [], [CreatableTopicConfig("segment.ms", "5000")]),
    ]
    created = broker.call(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics, 10_000, False), 7)
    answered = {
        topic.name: {
            config.name: [config.value, config.config_source, config.read_only, config.is_sensitive]
            for config in topic.configs
        }
        for topic in created.topics
    }
    for kind, name, changes in SETUP:
        code, message = broker.alter(kind, name, changes, validate_only=False)
        if code:
            raise SystemExit(f"{name}: {message}")
    time.sleep(2)  # until the broker has applied its own settings
    described = [[kind, name, broker.describe(kind, name)] for kind, name in DESCRIBED]
    tried = [
        [kind, name, changes, *broker.alter(kind, name, changes, validate_only=True)]
        for kind, name, changes in TRIED
    ]
    answers = {"setup": SETUP, "created": answered, "described": described, "tried": tried}
    json.dump(answers, sys.stdout, indent=1, sort_keys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
