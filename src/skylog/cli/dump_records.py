"""Internal records of brokers as plain values. Pure: no files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from skylog.cli.output import json_bytes
from skylog.client.admin.configs import ConfigType
from skylog.client.assignor import decode_assignment, decode_subscription
from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import Uuid
from skylog.kernel.secret import HIDDEN
from skylog.kernel.settings.synonyms import broker_key
from skylog.kernel.settings.tiered import METADATA_TOPIC
from skylog.tiered.segments import PartitionDeleteState, SegmentState
from skylog.wire.control_records import ControlType, parse_control
from skylog.wire.coordinator_records import decode_group_record, decode_transaction_record
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.group_metadata_value import MemberMetadata
from skylog.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from skylog.wire.metadata_records import decode_diskless, decode_metadata, decode_remote_log
from skylog.wire.records import Record
from skylog.wire.schema import Struct


class Decoder(StrEnum):
    """How the keys and values of a log are decoded."""

    AUTO = "auto"
    RAW = "raw"
    METADATA = "metadata"
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    DISKLESS = "diskless"
    REMOTE_LOG = "remote-log"


TOPICS: Final[Mapping[str, Decoder]] = {
    "__cluster_metadata": Decoder.METADATA,
    "__consumer_offsets": Decoder.OFFSETS,
    "__transaction_state": Decoder.TRANSACTIONS,
    "__diskless_metadata": Decoder.DISKLESS,
    METADATA_TOPIC: Decoder.REMOTE_LOG,
}
_SECRETS: Final[Mapping[type[Struct], frozenset[str]]] = {
    UserScramCredentialRecord: frozenset({"salt", "stored_key", "server_key"}),
}
# Numbers of states, as Kafka's tool names them.
STATES: Final[Mapping[str, Mapping[int, str]]] = {
    "remote_log_segment_state": {
        SegmentState.COPY_STARTED: "COPY_SEGMENT_STARTED",
        SegmentState.COPY_FINISHED: "COPY_SEGMENT_FINISHED",
        SegmentState.DELETE_STARTED: "DELETE_SEGMENT_STARTED",
        SegmentState.DELETE_FINISHED: "DELETE_SEGMENT_FINISHED",
    },
    "remote_partition_delete_state": {
        state: f"DELETE_PARTITION_{state.name}" for state in PartitionDeleteState
    },
}
_EMBEDDED: Final[Mapping[str, Callable[[bytes], list[Any]]]] = {
    "subscription": decode_subscription,
    "assignment": decode_assignment,
}


def record_row(record: Record, decoder: Decoder, *, control: bool) -> dict[str, Any]:
    """A record, decoded if possible; ``fault`` describes damage."""
    row: dict[str, Any] = {
        "kind": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    try:
        decoded = _control(record) if control else _DECODERS[decoder](record)
    except ProtocolError as error:
        return row | {"fault": str(error)} | _raw(record)
    row |= decoded
    if record.headers:
        row["headers"] = [{"name": name, **json_bytes("value", v)} for name, v in record.headers]
    return row


def _raw(record: Record) -> dict[str, Any]:
    return json_bytes("key", record.key) | json_bytes("value", record.value)


def _control(record: Record) -> dict[str, Any]:
    number, message = parse_control(record.key, record.value)
    known = number in ControlType._value2member_map_
    name = ControlType(number).name if known else f"control record {number}"
    return {"type": name, "data": plain(message) if message is not None else None}


def _metadata(message: Struct | None, record: Record) -> dict[str, Any]:
    if message is None:
        return _raw(record)
    return {"type": type(message).__name__, "data": plain(message)}


def _coordinator(found: tuple[Struct, Struct | None] | None, record: Record) -> dict[str, Any]:
    if found is None:
        return _raw(record)
    key, value = found
    name = type(key).__name__.removesuffix("Key")
    return {"type": name, "key": plain(key), "value": plain(value) if value is not None else None}


_DECODERS: Final[Mapping[Decoder, Callable[[Record], dict[str, Any]]]] = {
    Decoder.RAW: _raw,
    Decoder.METADATA: lambda record: _metadata(decode_metadata(record.value), record),
    Decoder.DISKLESS: lambda record: _metadata(decode_diskless(record.value), record),
    Decoder.REMOTE_LOG: lambda record: _metadata(decode_remote_log(record.value), record),
    Decoder.OFFSETS: lambda record: _coordinator(
        decode_group_record(record.key, record.value), record
    ),
    Decoder.TRANSACTIONS: lambda record: _coordinator(
        decode_transaction_record(record.key, record.value), record
    ),
}


def plain(value: object) -> Any:
    """A message as dicts, lists and strings. Secrets are hidden, because dumps are shared."""
    if isinstance(value, Struct):
        hidden = _hidden(value)
        return {
            field.name: HIDDEN
            if field.name in hidden
            else _field(value, field.name, getattr(value, field.name))
            for field in value.FIELDS
        }
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return next(iter(json_bytes("", bytes(value)).values()))
    return value


def _hidden(struct: Struct) -> frozenset[str]:
    if isinstance(struct, ConfigRecord) and struct.resource_type == ConfigType.BROKER:
        known = broker_key(struct.name)
        secret = known is None or known.sensitive  # an unknown setting may be a secret too
        return frozenset({"value"} if secret and struct.value is not None else ())
    return _SECRETS.get(type(struct), frozenset())


def _field(struct: Struct, name: str, value: object) -> Any:
    """Members of a group store subscription and assignment as nested bytes."""
    if name in STATES and isinstance(value, int):
        return STATES[name].get(value, value)
    if isinstance(struct, MemberMetadata) and name in _EMBEDDED and isinstance(value, bytes):
        try:
            return [str(item) for item in _EMBEDDED[name](value)]
        except ProtocolError:  # groups other than consumers have their own formats
            return plain(value)
    return plain(value)
