"""Frames, versions and headers: what happens before a handler sees a request."""

from __future__ import annotations

import struct

from skylog.wire.apis import ApiKey, encode_request_header, request_class
from skylog.wire.codec import decode, encode
from skylog.wire.messages.api_versions_response import ApiVersionsResponse
from skylog.wire.schema import Message
from tests.interop.wire import CLOSED, Side, Wire, scenario, served

# APIs of Kafka that we do not serve: share and streams groups, delegation tokens, telemetry, moving
# replicas between directories, and changing the quorum.
NOT_SERVED = {
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    *range(76, 80),  # share groups
    *range(83, 93),  # their state, streams groups
}


# Our own APIs, for diskless topics.
KAFKAS = [api for api in ApiKey if api < 93]


@scenario
def api_versions(side: Side) -> None:
    """The offered APIs are Kafka's, except those that we do not serve."""

    def offered(answer: dict[str, list[dict[str, object]]]) -> object:
        keys = answer["api_keys"]
        answer["api_keys"] = [k for k in keys if k["api_key"] not in NOT_SERVED]
        for field in ("api_keys", "supported_features", "finalized_features"):
            answer[field].sort(key=str)
        return answer

    software = {"client_software_name": "a-client", "client_software_version": "1.0"}
    for version in served(ApiKey.API_VERSIONS):
        given = software if version >= 3 else {}
        side.call(ApiKey.API_VERSIONS, version, keep=offered, **given)
    for name in ("", "-a", "a b", "a-", "a/b", "a.b-c"):
        values = {"client_software_name": name, "client_software_version": "1.0"}
        side.call(ApiKey.API_VERSIONS, 3, label=f"named {name!r}", keep=offered, **values)


@scenario
def api_versions_of_the_future(side: Side) -> None:
    wire = side.wire()
    for version in (5, 6, 100, 32767, -1):
        head = struct.pack(">hhihs", 18, version, 7, 1, b"c")
        answer = wire.raw(head + b"\0" + b"whatever")
        if answer is None:
            side.note(f"version {version}", CLOSED)
            continue
        body = decode(ApiVersionsResponse, answer, 0, 4)
        side.note(f"version {version}", body)
    side.call(ApiKey.METADATA, 12, label="the connection is still good", topics=[])


def _closed(side: Side, label: str, frame: bytes) -> None:
    side.note(label, side.wire().raw(frame) is None)


@scenario
def versions_that_do_not_exist(side: Side) -> None:
    """One version below and above the offered ones of every API: the connection is closed."""
    for api in KAFKAS:
        if api in NOT_SERVED or api is ApiKey.API_VERSIONS:
            continue
        versions = served(api)
        for version in (min(versions) - 1, max(versions) + 1):
            head = struct.pack(">hhih", api, version, 1, -1)
            _closed(side, f"{api.name} {version}", head + bytes(60))


@scenario
def keys_that_do_not_exist(side: Side) -> None:
    for key in (-1, 54, 500, 999, 32767):
        _closed(side, f"API {key}", struct.pack(">hhih", key, 0, 1, -1) + bytes(20))


@scenario
def broken_frames(side: Side) -> None:
    for size in range(14):
        head = struct.pack(">hhih", ApiKey.METADATA, 9, 1, -1) + b"\0\1\1\0"
        _closed(side, f"{size} bytes of Metadata", head[:size])
    whole = encode_request_header(ApiKey.METADATA, 12, 1, "c")
    _closed(side, "a count of 2**28", whole + b"\xff\xff\xff\x7f" + bytes(30))
    _closed(side, "a client id beyond the frame", struct.pack(">hhihs", 3, 12, 1, 99, b"c"))
    _closed(side, "a client id that is not text", struct.pack(">hhih2s", 3, 1, 1, 2, b"\xff\xfe"))


@scenario
def broken_lengths(side: Side) -> None:
    import socket

    for size in (-1, -(2**31), 2**31 - 1, 104_857_601):
        with socket.create_connection(side.address, timeout=20) as connection:
            connection.sendall(struct.pack(">i", size))
            try:
                answer = connection.recv(1)
            except ConnectionError:
                answer = b""
            side.note(f"a frame of {size}", answer)


def _empty(api: ApiKey) -> Message | None:
    return request_class(api)()


@scenario
def empty_requests(side: Side) -> None:
    """An empty request of every API, in every version that allows it."""
    apart = {
        ApiKey.API_VERSIONS,  # compared above
        ApiKey.PRODUCE,  # with acks 0 there is no response
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.METADATA,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.ELECT_LEADERS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.FETCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,  # Kafka never answers an empty batch
        ApiKey.LIST_TRANSACTIONS,  # other scenarios have left theirs behind
    }
    side.warm()
    for api in KAFKAS:
        message = request_class(api)
        if api in NOT_SERVED or api in apart or "broker" not in message.LISTENERS:
            continue
        for version in served(api):
            try:
                encode(message(), version)
            except Exception:  # noqa: BLE001 - a field that this version must have
                continue
            side.call(api, version, wire=f"{api.name}{version}")


@scenario
def client_ids(side: Side) -> None:
    for name in ("", "a b", "ü", "x" * 3000, None):
        wire = Wire(side.address, name)  # type: ignore[arg-type]
        side.note(f"client id {name!r:.20}", wire.call(ApiKey.FIND_COORDINATOR, 4, key_type=0))
        wire.close()
