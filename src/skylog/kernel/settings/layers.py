"""The sources of settings, in increasing precedence: the file, SKYLOG_* variables, --override.

Without a file, the default is a single node: broker and controller in one process, on the loopback
address only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skylog.kernel.config import Schema
from skylog.kernel.errors import ConfigError
from skylog.kernel.limits import SETTING_VALUE_CHARACTERS_MAX, SETTINGS_FILE_BYTES_MAX
from skylog.kernel.properties import parse_properties
from skylog.kernel.settings.listeners import PREFIX, PROTOCOLS, parse_endpoints
from skylog.kernel.settings.tiered import open_prefixes

ENVIRONMENT_PREFIX: Final = "SKYLOG_"
# Our environment variables that are not settings.
ENVIRONMENT_OTHERS: Final = frozenset(
    {
        "SKYLOG_BOOTSTRAP",
        "SKYLOG_CONFIG",
        "SKYLOG_INVARIANT_RAISES",
        "SKYLOG_KAFKA_JARS",
        "SKYLOG_SEED",
        "SKYLOG_SPARK_FIND_PUSHDOWN",
        "SKYLOG_SPARK_FREEZE_IMPORTS",
        "SKYLOG_SPARK_KEEP_MEMORY",
        "SKYLOG_SPARK_QUICK_ACK",
    }
)
# Settings passed to plugins or to one listener; their names are not known here.
OPEN_PREFIXES: Final = (PREFIX, *open_prefixes({}))

CONTROLLER: Final = "CONTROLLER"
EMBEDDED: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": f"PLAINTEXT://127.0.0.1:9092,{CONTROLLER}://127.0.0.1:9093",
    "controller.listener.names": CONTROLLER,
    "log.dirs": "./skylog-data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "diskless.metadata.topic.num.partitions": "1",
    "diskless.metadata.topic.replication.factor": "1",
    "diskless.metadata.topic.min.isr": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.min.isr": "1",
}


@dataclass(frozen=True, slots=True)
class Given:
    """A setting's text and its source."""

    text: str
    where: str


def gather(
    path: Path | None, environ: Mapping[str, str], overrides: Sequence[str], known: Schema
) -> dict[str, Given]:
    """All given settings, by name; raises ConfigError for unknown names."""
    found = _from_file(path) if path is not None else {}
    found.update(_from_environment(environ))
    found.update(_from_overrides(overrides))
    texts = {name: given.text for name, given in found.items()}
    prefixes = (*OPEN_PREFIXES, *open_prefixes(texts))
    for name, given in found.items():
        if len(given.text) > SETTING_VALUE_CHARACTERS_MAX:
            raise ConfigError(
                f"{name} ({given.where}) has {len(given.text)} characters; "
                f"at most {SETTING_VALUE_CHARACTERS_MAX} are allowed"
            )
        if name not in known and not name.startswith(prefixes):
            raise known.unknown(name, _shown(name, given.text), given.where)
    return found if path is not None else _embedded(found)


def _shown(name: str, text: str) -> str:
    """Do not show a value that may be a secret under a mistyped name."""
    secret = any(word in name.lower() for word in ("password", "secret", "jaas", "key", "token"))
    return "[hidden]" if secret else text[:200]


def _from_file(path: Path) -> dict[str, Given]:
    try:
        with path.open("rb") as file:
            content = file.read(SETTINGS_FILE_BYTES_MAX + 1)
        if len(content) > SETTINGS_FILE_BYTES_MAX:
            raise ConfigError(f"{path} is larger than {SETTINGS_FILE_BYTES_MAX} bytes")
        texts = parse_properties(content.decode())
    except OSError as error:
        raise ConfigError(f"cannot read settings from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return {name: Given(text, str(path)) for name, text in texts.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Given]:
    return {
        environment_name(variable): Given(text, f"environment variable {variable}")
        for variable, text in sorted(environ.items())
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in ENVIRONMENT_OTHERS
    }


def environment_name(variable: str) -> str:
    """SKYLOG_LOG_RETENTION_HOURS is log.retention.hours; ``__`` is a dash, ``___`` an underscore.

    >>> environment_name("SKYLOG_LISTENER_NAME_SASL___SSL_SCRAM__SHA__256_SASL_JAAS_CONFIG")
    'listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config'
    """
    name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    for mark, character in (("___", "\0"), ("__", "-"), ("_", "."), ("\0", "_")):
        name = name.replace(mark, character)
    return name


def _from_overrides(overrides: Sequence[str]) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for entry in overrides:
        name, equals, text = entry.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--override {entry[:200]} is not of the form name=value")
        found[name.strip()] = Given(text, f"--override {name.strip()}")
    return found


def _embedded(found: dict[str, Given]) -> dict[str, Given]:
    """The given settings on top of the embedded defaults; a missing controller listener is
    added."""
    merged = {name: Given(text, "embedded default") for name, text in EMBEDDED.items()}
    if "log.dir" in found:
        del merged["log.dirs"]
    if "broker.id" in found:
        del merged["node.id"]
    merged.update(found)
    if "listeners" in found and "controller" in merged["process.roles"].text:
        _complete_listeners(merged, found)
    return merged


def _complete_listeners(merged: dict[str, Given], found: Mapping[str, Given]) -> None:
    """If only the client listener is configured, a controller listener on a free port is added."""
    given = found["listeners"]
    entries = tuple(entry.strip() for entry in given.text.split(",") if entry.strip())
    names = [endpoint.name for endpoint in parse_endpoints("listeners", entries)]
    if CONTROLLER not in names and "controller.listener.names" not in found:
        merged["listeners"] = Given(f"{given.text},{CONTROLLER}://127.0.0.1:0", given.where)
        protocols = found.get("listener.security.protocol.map")
        if protocols is not None and f"{CONTROLLER}:" not in protocols.text.upper():
            mapped = Given(f"{protocols.text},{CONTROLLER}:PLAINTEXT", protocols.where)
            merged["listener.security.protocol.map"] = mapped
        elif protocols is None and set(names) & set(PROTOCOLS[1:]):
            pairs = (f"{name}:{name}" for name in PROTOCOLS)
            mapped = Given(f"{','.join(pairs)},{CONTROLLER}:PLAINTEXT", given.where)
            merged["listener.security.protocol.map"] = mapped
    chosen = {"inter.broker.listener.name", "security.inter.broker.protocol"} & found.keys()
    brokers = [name for name in names if name not in merged["controller.listener.names"].text]
    if not chosen and brokers and "PLAINTEXT" not in brokers:
        merged["inter.broker.listener.name"] = Given(brokers[0], given.where)
