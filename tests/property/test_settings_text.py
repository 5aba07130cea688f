"""Properties files and the values of every setting survive a round trip."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.config import ConfigKey, ConfigType, format_value, parse
from skylog.kernel.errors import ConfigError
from skylog.kernel.properties import format_properties, parse_properties
from skylog.kernel.settings.definitions import (
    BROKER,
    BROKER_QUOTA,
    CLIENT_METRICS,
    CLIENT_QUOTA,
    GROUP,
    IP_QUOTA,
    TOPIC,
)
from skylog.kernel.validators import validator

texts = st.text(st.characters(exclude_categories=["Cs"]))
SCHEMAS = (BROKER, BROKER_QUOTA, CLIENT_METRICS, CLIENT_QUOTA, GROUP, IP_QUOTA, TOPIC)
KEYS = [key for schema in SCHEMAS for key in schema.values()]


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(texts.filter(bool), texts))
def test_properties_read_back(values: dict[str, str]) -> None:
    assert parse_properties(format_properties(values)) == values


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text_is_properties_or_refused(text: str) -> None:
    try:
        parse_properties(text)
    except ConfigError as error:
        assert "line" in str(error)


VALUES = {
    ConfigType.BOOLEAN: st.booleans(),
    ConfigType.INT: st.integers(-(2**31), 2**31 - 1),
    ConfigType.SHORT: st.integers(-(2**15), 2**15 - 1),
    ConfigType.LONG: st.integers(-(2**63), 2**63 - 1),
    ConfigType.DOUBLE: st.floats(allow_nan=True),
    ConfigType.LIST: st.lists(st.text("abc-_.:1", min_size=1)).map(tuple),
    ConfigType.STRING: st.text("abc -,=").map(str.strip),
}


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(sorted(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])))
def test_values_read_back(case: tuple[ConfigType, object]) -> None:
    kind, value = case
    again = parse("x", format_value(value), kind)
    both_nan = isinstance(value, float) and math.isnan(value) and math.isnan(again)
    assert both_nan or again == value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(ConfigType)), texts)
def test_any_text_is_a_value_or_refused(kind: ConfigType, text: str) -> None:
    try:
        value = parse("x", text, kind)
    except ConfigError as error:
        assert "for configuration x" in str(error)
    else:
        parse("x", format_value(value), kind)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_default_reads_back_and_every_rule_is_written_as_it_is_read(key: ConfigKey) -> None:
    text = key.format(key.default)
    if text is not None:
        assert parse(key.name, text, key.type) == key.default
    if key.validator is not None:
        assert str(validator(str(key.validator))) == str(key.validator)
    assert key.allowed
