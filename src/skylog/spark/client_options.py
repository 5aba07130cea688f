"""Options that begin with ``kafka.``: settings of a Kafka client, for reading and for writing.

Pure. Settings that our client knows are used. Settings that only tune a Java client are accepted
without effect, so that a job need not be changed. Settings that would change what is read or who
reads it, and unknown ones, are refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from skylog.bulk.properties import BOOTSTRAP, HONOURED, WITHOUT_EFFECT
from skylog.client.settings import ClientSettings
from skylog.kernel.errors import ConfigError

PREFIX: Final = "kafka."
REFUSED_IN_READS: Final[Mapping[str, str]] = {
    "auto.offset.reset": "say where to start with startingOffsets",
    "enable.auto.commit": "Spark's checkpoint holds the offsets; publish.group.id shows them",
    "interceptor.classes": "transform the rows of the DataFrame instead",
    "key.deserializer": "keys are bytes; decode them with functions of the DataFrame",
    "value.deserializer": "values are bytes; decode them with functions of the DataFrame",
}


def client_properties(
    options: Mapping[str, str],
    refused: Mapping[str, str] = REFUSED_IN_READS,
    without_effect: Collection[str] = WITHOUT_EFFECT,
) -> dict[str, str]:
    """The client's settings among the options, validated; ConfigError names invalid ones.

    ``options`` are all options of the query by lower-case name.
    """
    given = {key[len(PREFIX) :]: value for key, value in options.items() if key.startswith(PREFIX)}
    for key, instead in refused.items():
        if key in given:
            raise ConfigError(f"option {PREFIX}{key} is not supported: {instead}")
    unknown = sorted(given.keys() - HONOURED - set(without_effect))
    if unknown:
        names = ", ".join(PREFIX + key for key in unknown)
        raise ConfigError(
            f"unknown options {names}; allowed are the settings of a Kafka client:"
            " kafka.bootstrap.servers, kafka.security.protocol, kafka.sasl.*, kafka.ssl.*, …"
        )
    if not given.get(BOOTSTRAP, "").strip():
        raise ConfigError("option kafka.bootstrap.servers is not set; allowed is host:port,…")
    properties = {key: value for key, value in given.items() if key in HONOURED}
    try:
        ClientSettings.of(properties)
    except ConfigError as error:
        raise ConfigError(f"options {PREFIX}*: {error}") from None
    return properties
