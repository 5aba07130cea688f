"""Client requests that a broker forwards to the active controller (KIP-590). Pure.

The client's request is sent unchanged, with the client's principal and address, which the
controller uses for authorization and quotas.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.security.connection_limits import host_address
from skylog.wire.apis import ApiKey, response_class, response_header_version
from skylog.wire.buffers import Buffer
from skylog.wire.codec import decode, decode_at, encode_parts
from skylog.wire.messages.default_principal_data import DefaultPrincipalData
from skylog.wire.messages.envelope_request import EnvelopeRequest
from skylog.wire.messages.response_header import ResponseHeader
from skylog.wire.schema import Message, Struct

_PRINCIPAL_VERSION: Final = b"\0\0"
_LOOPBACK: Final = b"\x7f\0\0\1"

# What the controller accepts in an envelope, as Kafka does.
FORWARDABLE: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
# The quorum uses this error where all other APIs use NOT_CONTROLLER.
_QUORUM_APIS: Final = frozenset(
    {ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER}
)


def new_envelope(frame: bytes, principal: str, host: str) -> EnvelopeRequest:
    """``frame`` is the client's request with its header, without the length."""
    kind, _, name = principal.partition(":")
    told = encode_parts(DefaultPrincipalData(kind, name), 0)
    return EnvelopeRequest(frame, _PRINCIPAL_VERSION + b"".join(told), _packed(host))


def _packed(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return _LOOPBACK  # a socket without an address is local


def principal_of(envelope: EnvelopeRequest) -> str:
    """The client's principal; PRINCIPAL_DESERIALIZATION_FAILURE if it cannot be parsed."""
    data = bytes(envelope.request_principal or b"")
    try:
        if data[:2] != _PRINCIPAL_VERSION:
            raise ProtocolError("a principal of an unknown version")
        found = decode(DefaultPrincipalData, data, 0, len(_PRINCIPAL_VERSION))
    except ProtocolError as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            "Failed to deserialize client principal from envelope",
        ) from error
    return f"{found.type}:{found.name}"


def host_of(envelope: EnvelopeRequest) -> str:
    """The client's address; INVALID_REQUEST if it is invalid."""
    try:
        return host_address(str(ipaddress.ip_address(bytes(envelope.client_host_address))))
    except ValueError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Failed to parse client address from envelope"
        ) from error


def opened(key: ApiKey, version: int, payload: Buffer) -> Any:
    """The response in an envelope; ProtocolError if it is invalid."""
    _, position = decode_at(ResponseHeader, payload, response_header_version(key, version), 0)
    return decode(response_class(key), payload, version, position)


def is_elsewhere(key: ApiKey, response: Message) -> bool:
    """Whether a response says that this node is not the active controller."""
    if key in _QUORUM_APIS and _mentions(response, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        return True
    return _mentions(response, ErrorCode.NOT_CONTROLLER)


def _mentions(found: Any, code: ErrorCode) -> bool:
    if isinstance(found, list):
        return any(_mentions(each, code) for each in found)
    if not isinstance(found, Struct):
        return False
    for field in found.FIELDS:
        value = getattr(found, field.name)
        if value == code if field.name == "error_code" else _mentions(value, code):
            return True
    return False
