"""Settings of a Kafka client that bulk readers and writers know. Pure.

Settings that our client knows are used. Settings that only tune a Java client are accepted without
effect, so that a job need not be changed. Unknown settings are refused by name.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from skylog.kernel.errors import ConfigError

BOOTSTRAP: Final = "bootstrap.servers"
HONOURED: Final = frozenset(
    {
        BOOTSTRAP,
        "client.id",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "metadata.max.age.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.connection.setup.timeout.ms",
    }
)
# They tune how a Java consumer or producer works, or name the group it would join.
WITHOUT_EFFECT: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "check.crcs",
        "client.dns.lookup",
        "client.rack",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
    }
)


def check_config(config: Mapping[str, str]) -> dict[str, str]:
    """The settings that are used; ConfigError names unknown ones."""
    known = sorted(HONOURED | WITHOUT_EFFECT)
    for key, value in config.items():
        if key not in HONOURED and key not in WITHOUT_EFFECT:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f" (is it {near[0]}?)" if near else ""
            raise ConfigError(
                f"config has an unknown setting {key!r}{hint}; allowed are those of a Kafka"
                f" consumer: {', '.join(sorted(HONOURED))}"
            )
        if not isinstance(value, str):
            raise ConfigError(f"config {key} is {value!r}; allowed is text")
    return {key: value for key, value in config.items() if key in HONOURED}
