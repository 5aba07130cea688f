"""Layers, embedded defaults, names, and what BrokerSettings offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.errors import ConfigError
from skylog.kernel.limits import SETTING_VALUE_CHARACTERS_MAX, SETTINGS_FILE_BYTES_MAX
from skylog.kernel.secret import Secret
from skylog.kernel.settings import load_settings
from skylog.kernel.settings.layers import environment_name

MINIMAL = """
process.roles=broker,controller
node.id=7
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
"""


def file(folder: Path, text: str = MINIMAL) -> Path:
    path = folder / "server.properties"
    path.write_text(text)
    return path


def test_a_node_of_its_own_needs_no_file() -> None:
    settings = load_settings(None, {}, [])
    assert settings.node.node_id == 1
    assert settings.node.is_broker and settings.node.is_controller
    assert settings.node.log_dirs == ("./skylog-data",)
    assert settings.node.metadata_dir == "./skylog-data"
    assert settings.groups.offsets_topic_replication_factor == 1
    assert settings.groups.initial_rebalance_delay_ms == 3000
    assert [(x.name, x.host, x.port) for x in settings.listeners] == [
        ("PLAINTEXT", "127.0.0.1", 9092),
        ("CONTROLLER", "127.0.0.1", 9093),
    ]
    assert [x.name for x in settings.broker_listeners] == ["PLAINTEXT"]
    assert [x.name for x in settings.controller_listeners] == ["CONTROLLER"]


def test_later_layers_win(tmp_path: Path) -> None:
    path = file(tmp_path, MINIMAL + "num.partitions=2\nlog.roll.ms=5\nlog.segment.bytes=2097152\n")
    settings = load_settings(
        path,
        {"SKYLOG_NUM_PARTITIONS": "3", "SKYLOG_LOG_ROLL_MS": "6", "PATH": "/bin"},
        ["num.partitions=4"],
    )
    assert settings.topics.partitions == 4
    assert settings["log.roll.ms"] == 6
    assert settings.log_segment_bytes == 2_097_152
    assert settings.static["num.partitions"] == "4"


def test_a_file_stands_alone(tmp_path: Path) -> None:
    settings = load_settings(file(tmp_path), {}, [])
    assert settings.groups.offsets_topic_replication_factor == 3  # Kafka's, not the embedded one
    assert settings.node.log_dirs == ("/tmp/kafka-logs",)


@pytest.mark.parametrize("name", ["process.roles", "node.id", "controller.listener.names"])
def test_a_file_must_say_who_the_node_is(tmp_path: Path, name: str) -> None:
    lines = [line for line in MINIMAL.splitlines() if not line.startswith(name)]
    with pytest.raises(ConfigError, match=f'Missing required configuration "{name}"'):
        load_settings(file(tmp_path, "\n".join(lines)), {}, [])


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {"SKYLOG_LOG_RETENTOIN_HOURS": "1"}, [])
    assert "log.retentoin.hours=1" in str(caught.value)
    assert "SKYLOG_LOG_RETENTOIN_HOURS" in str(caught.value)
    assert "log.retention.hours" in str(caught.value)


def test_an_unknown_name_does_not_give_a_secret_away() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {}, ["ssl.keystor.password=hunter2"])
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["listener.name.x.my.plugin", "rsm.config.bucket", "num.io.threads", "metric.reporters"],
)
def test_what_skylog_does_not_use_is_accepted(name: str) -> None:
    settings = load_settings(None, {}, [f"{name}=4"])
    assert settings.static[name] == "4"


@pytest.mark.parametrize("variable", ["SKYLOG_KAFKA_JARS", "SKYLOG_CONFIG"])
def test_other_variables_of_ours_are_no_settings(variable: str) -> None:
    load_settings(None, {variable: "x"}, [])


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("SKYLOG_LOG_RETENTION_HOURS", "log.retention.hours"),
        ("SKYLOG_LISTENER_NAME_A___B_PLAIN_SASL_JAAS_CONFIG",
         "listener.name.a_b.plain.sasl.jaas.config"),
        ("SKYLOG_LISTENER_NAME_C_SCRAM__SHA__256_SASL_JAAS_CONFIG",
         "listener.name.c.scram-sha-256.sasl.jaas.config"),
    ],
)  # fmt: skip
def test_environment_names(variable: str, name: str) -> None:
    assert environment_name(variable) == name


def test_an_error_names_key_value_allowed_and_where(tmp_path: Path) -> None:
    path = file(tmp_path, MINIMAL + "num.partitions=none\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {}, [])
    text = str(caught.value)
    assert "Invalid value none for configuration num.partitions" in text
    assert "a 32-bit integer, [1,...]" in text
    assert str(path) in text


@pytest.mark.parametrize("entry", ["num.partitions", "=3", ""])
def test_overrides_have_a_form(entry: str) -> None:
    with pytest.raises(ConfigError, match="name=value"):
        load_settings(None, {}, [entry])


def test_files_and_values_have_limits(tmp_path: Path) -> None:
    load_settings(None, {}, ["broker.rack=" + "x" * SETTING_VALUE_CHARACTERS_MAX])
    with pytest.raises(ConfigError, match="characters"):
        load_settings(None, {}, ["broker.rack=" + "x" * (SETTING_VALUE_CHARACTERS_MAX + 1)])
    room = SETTINGS_FILE_BYTES_MAX - len(MINIMAL)
    load_settings(file(tmp_path, MINIMAL + "#" * room), {}, [])
    with pytest.raises(ConfigError, match="larger"):
        load_settings(file(tmp_path, MINIMAL + "#" * (room + 1)), {}, [])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(tmp_path / "none", {}, [])
    (tmp_path / "binary").write_bytes(b"a=\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_settings(tmp_path / "binary", {}, [])
    with pytest.raises(ConfigError, match="line 6"):
        load_settings(file(tmp_path, MINIMAL + "a=\\u12x\n"), {}, [])


def test_broker_id_is_the_old_name_of_node_id() -> None:
    assert load_settings(None, {}, ["broker.id=9"]).node.node_id == 9
    assert load_settings(None, {}, ["node.id=9"])["broker.id"] == 9
    with pytest.raises(ConfigError, match=r"broker\.id"):
        load_settings(None, {}, ["broker.id=9", "node.id=8"])


def test_flat_access() -> None:
    settings = load_settings(None, {}, [])
    assert (
        settings.fetch_max_bytes == settings["fetch.max.bytes"] == settings.network.fetch_bytes_max
    )
    with pytest.raises(AttributeError, match=r"fetch\.bytes"):
        _ = settings.fetch_bytes
    with pytest.raises(KeyError):
        _ = settings["fetch.bytes"]


def test_log_dir_stands_in_for_log_dirs() -> None:
    assert load_settings(None, {}, ["log.dir=/a"]).node.log_dirs == ("/a",)
    both = load_settings(None, {}, ["log.dir=/a", "log.dirs=/b,/c", "metadata.log.dir=/d"])
    assert both.node.log_dirs == ("/b", "/c")
    assert both.node.metadata_dir == "/d"


def test_dynamic_layers_change_values_and_not_what_is_static() -> None:
    settings = load_settings(None, {}, ["log.retention.hours=3"])
    changed = settings.with_dynamic({"log.retention.ms": "5"}, {"max.connections": "7"})
    assert changed["log.retention.ms"] == 5
    assert changed.network.connections_max == 7
    assert changed.static == settings.static
    assert "log.retention.ms" not in changed.static


def test_a_dynamic_setting_beats_its_static_synonyms() -> None:
    settings = load_settings(None, {}, ["log.roll.hours=3", "log.roll.ms=4"])
    assert settings.with_dynamic({}, {"log.roll.hours": "2"})["log.roll.ms"] is None


def test_secrets_do_not_show() -> None:
    settings = load_settings(
        None, {}, ["ssl.key.password=hunter2", "listener.name.plaintext.ssl.key.password=hunter3"]
    )
    assert settings["ssl.key.password"] == Secret("hunter2")
    assert settings.listener("PLAINTEXT").values["ssl.key.password"] == Secret("hunter3")
    assert "hunter" not in repr(settings)
