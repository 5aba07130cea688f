"""Our codec compared with kio's, an independent implementation of the same schemas.

Both get the same values for every message class and version: they must write the same bytes and
read them back to the same values. kio has other names and richer types for some fields, so fields
are matched by their position in the schema.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import random
import uuid
from typing import Any

import kio.schema.errors
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_entity_module
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from skylog.kernel.errors import ProtocolError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.wire.apis import OWN_APIS_FROM
from skylog.wire.codec import decode_at, encode, encode_parts
from skylog.wire.schema import Field, Message, Struct
from tests.property.wire_values import Special, all_messages, all_versions, make

EXAMPLES = 12
OWN_TAGS_FROM = 10_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
ERROR_CODES = tuple(int(code) for code in kio.schema.errors.ErrorCode)
KINDS = {
    "request": (EntityType.request, "Request"),
    "response": (EntityType.response, "Response"),
    "header": (EntityType.header, ""),
    "data": (EntityType.data, ""),
}


def kio_name(cls: type[Message]) -> str:
    return cls.__module__.rpartition(".")[2].removesuffix("_request").removesuffix("_response")


def kio_class(cls: type[Message], version: int) -> Any:
    """kio's class of a message, or None: it has no internal records."""
    if cls.TYPE not in KINDS:
        return None
    kind, _ = KINDS[cls.TYPE]
    name = kio_name(cls)
    if cls.TYPE == "header":
        name = cls.__module__.rpartition(".")[2]
    if name not in schema_name_map or version not in schema_name_map[name]:
        return None
    return getattr(load_entity_module(name, version, kind), cls.__name__)


COVERED = [(c, v) for c, v in all_versions() if kio_class(c, v) is not None]


def is_own(field: Field) -> bool:
    """A tagged field that we add to Kafka's messages; other implementations skip it."""
    return field.tag is not None and field.tag >= OWN_TAGS_FROM


def without_own(message: Struct) -> Any:
    """The message with Kafka's fields only."""
    for field in message.FIELDS:
        if is_own(field):
            setattr(message, field.name, getattr(type(message)(), field.name))
        elif isinstance(field.type, type):
            value = getattr(message, field.name)
            for inner in value if isinstance(value, list) else [value]:
                if inner is not None:
                    without_own(inner)
    return message


def kio_fields(cls: type[Struct], theirs: Any, version: int) -> list[tuple[Field, Any]]:
    ours = [f for f in cls.FIELDS if version in f.versions and not is_own(f)]
    return list(zip(ours, dataclasses.fields(theirs), strict=True))


def element_type(field: Any) -> Any:
    """The class of a nested entity in a kio field, from ``tuple[X, ...]   None``."""
    found = field.type
    for candidate in (found, *getattr(found, "__args__", ())):
        for inner in (candidate, *getattr(candidate, "__args__", ())):
            if dataclasses.is_dataclass(inner):
                return inner
    raise AssertionError(field)


def to_kio(message: Struct, theirs: Any, version: int) -> Any:
    values = {}
    for ours, field in kio_fields(type(message), theirs, version):
        value = getattr(message, ours.name)
        if value is not None:
            one = _converter(ours, field, version)
            value = tuple(map(one, value)) if ours.array else one(value)
        values[field.name] = value
    return theirs(**values)


def _converter(ours: Field, field: Any, version: int) -> Any:
    if isinstance(ours.type, type):
        inner = element_type(field)
        return lambda value: to_kio(value, inner, version)
    kind = field.metadata.get("kafka_type")
    if kind == "error_code":
        return kio.schema.errors.ErrorCode
    if kind in ("timedelta_i32", "timedelta_i64"):
        return lambda value: datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return lambda ms: None if ms == -1 else EPOCH + datetime.timedelta(milliseconds=ms)
    if kind == "uuid":
        return lambda value: None if value == ZERO_UUID else uuid.UUID(bytes=bytes(value))
    return lambda value: value


def from_kio(entity: Any, cls: type[Struct], version: int) -> Any:
    out = cls()
    for ours, field in kio_fields(cls, type(entity), version):
        setattr(out, ours.name, _plain(getattr(entity, field.name), ours, field, version))
    return out


def _plain(value: Any, ours: Field, field: Any, version: int) -> Any:
    if value is None and (ours.array or version in ours.nullable):
        return None
    if ours.array:
        return [_plain_one(item, ours, field, version) for item in value]
    return _plain_one(value, ours, field, version)


def _plain_one(value: Any, ours: Field, field: Any, version: int) -> Any:
    if isinstance(ours.type, type):
        return from_kio(value, ours.type, version)
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round((value - EPOCH).total_seconds() * 1000)
    kind = field.metadata.get("kafka_type")
    if kind == "datetime_i64" and value is None:
        return -1
    if kind == "uuid":
        return ZERO_UUID if value is None else Uuid(value.bytes)
    return value


def kio_ranges(cls: type[Message], theirs: Any, version: int) -> Special:
    """Keep values within what kio's richer types can hold."""
    kinds: dict[tuple[type[Struct], str], str] = {}
    optional: set[tuple[type[Struct], str]] = set()

    def collect(owner: type[Struct], entity: Any) -> None:
        for ours, field in kio_fields(owner, entity, version):
            kinds[owner, ours.name] = field.metadata.get("kafka_type", "")
            if "None" in str(field.type):
                optional.add((owner, ours.name))
            if isinstance(ours.type, type):
                collect(ours.type, element_type(field))

    collect(cls, theirs)

    def special(owner: type[Struct], field: Field) -> Any:
        kind = kinds.get((owner, field.name))
        if kind == "error_code":
            return lambda rng: rng.choice(ERROR_CODES)
        if kind in ("timedelta_i32", "timedelta_i64"):
            return lambda rng: rng.choice((0, 1, 100, 30_000, 2**31 - 1, -1))
        if kind == "datetime_i64":
            none = (-1,) if (owner, field.name) in optional else ()
            return lambda rng: rng.choice((*none, 0, 1_700_000_000_123))
        return None

    return special


def compare(cls: type[Message], version: int, seed: int) -> None:
    theirs = kio_class(cls, version)
    rng = random.Random(f"{cls.__name__} {version} {seed}")
    message = without_own(make(cls, version, rng, kio_ranges(cls, theirs, version)))
    written = encode(message, version)
    assert b"".join(encode_parts(message, version)) == written
    # Ours to theirs.
    entity, size = entity_reader(theirs)(written, 0)
    assert size == len(written)
    assert from_kio(entity, cls, version) == message
    # Theirs to ours.
    buffer = io.BytesIO()
    entity_writer(theirs)(buffer, to_kio(message, theirs, version))
    assert buffer.getvalue() == written
    ours, position = decode_at(cls, buffer.getvalue(), version, 0)
    assert position == len(written)
    assert ours == message
    # At an offset, in a view.
    shifted, position = decode_at(cls, memoryview(bytearray(b"\xff" * 7 + written)), version, 7)
    assert position == len(written) + 7
    assert shifted == message


@pytest.mark.parametrize("cls", sorted({c for c, _ in COVERED}, key=lambda c: c.__name__))
def test_same_bytes_and_values_as_kio(cls: type[Message]) -> None:
    for version in (v for c, v in COVERED if c is cls):
        for seed in range(EXAMPLES):
            compare(cls, version, seed)


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(COVERED), st.integers(min_value=EXAMPLES))
def test_same_as_kio_for_any_values(case: tuple[type[Message], int], seed: int) -> None:
    compare(*case, seed)


def test_kio_covers_all_client_messages() -> None:
    seen = {c.__name__ for c, _ in COVERED}
    missing = {c.__name__ for c in all_messages() if c.TYPE in KINDS} - seen
    own = {
        c.__name__
        for c in all_messages()
        if c.__name__.startswith("Diskless") or (c.TYPE in KINDS and c.API_KEY >= OWN_APIS_FROM)
    }
    assert missing == {"QuorumStateData"} | own


@pytest.mark.parametrize(
    "cls", [c for c in all_messages() if c.TYPE not in KINDS or c.__name__.startswith("Diskless")]
)
def test_internal_records_survive_a_round_trip(cls: type[Message]) -> None:
    for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
        for seed in range(EXAMPLES):
            message = make(cls, version, random.Random(f"{cls.__name__} {version} {seed}"))
            written = encode(message, version)
            read, position = decode_at(cls, written, version, 0)
            assert (read, position) == (message, len(written))


@pytest.mark.parametrize("cls", all_messages())
def test_fields_that_a_version_cannot_carry_are_refused(cls: type[Message]) -> None:
    """A field that the version lacks must have its default, unless Kafka ignores it."""
    for field in cls.FIELDS:
        if isinstance(field.type, type) or field.array or field.type in ("bytes", "records"):
            continue
        for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
            if version in field.versions:
                continue
            message = cls()
            setattr(message, field.name, _other(field))
            if field.ignorable:
                read = decode_at(cls, encode(message, version), version, 0)[0]
                assert getattr(read, field.name) == field.default
            else:
                with pytest.raises(ProtocolError, match=field.name):
                    encode(message, version)


def _other(field: Field) -> Any:
    if field.type == "string":
        return "other"
    if field.type == "uuid":
        return Uuid(b"u" * 16)
    return not field.default if field.type == "bool" else 77
