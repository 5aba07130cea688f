"""The program understands the settings in the deployment files."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import pytest
from strictyaml.ruamel.main import safe_load, safe_load_all

from skylog.kernel.properties import parse_properties
from skylog.kernel.settings import BrokerSettings, load_settings
from skylog.kernel.settings.definitions import BROKER
from skylog.kernel.settings.layers import OPEN_PREFIXES, environment_name

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "skylog"
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="x" user_node="x";'
)
SECRETS = {
    f"SKYLOG_LISTENER_NAME_{name}_PLAIN_SASL_JAAS_CONFIG": JAAS
    for name in ("CONTROLLER", "REPLICATION")
}


def known(name: str) -> bool:
    return name in BROKER or name.startswith(OPEN_PREFIXES)


def is_for_production(settings: BrokerSettings) -> bool:
    diskless = settings.diskless
    return (
        diskless.metadata_partitions,
        diskless.metadata_replication_factor,
        diskless.metadata_isr_min,
        settings.topics.replication_factor,
    ) == (12, 3, 2, 3)


# Files of settings ------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_nodes_of_production(role: str) -> None:
    settings = load_settings(DEPLOY / "config" / f"{role}.properties", SECRETS)
    assert settings.node.process_roles == (role,)
    assert {listener.protocol for listener in settings.listeners} == {"SASL_SSL"}
    assert is_for_production(settings)


@pytest.mark.parametrize("page", ["production.md", "managed-replication.md", "quorum.md"])
def test_settings_in_the_docs_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        for name in parse_properties(block):
            assert known(name), name
    for variable in re.findall(r"\bSKYLOG_[A-Z0-9_]*[A-Z0-9]\b", text):
        assert known(environment_name(variable)), variable
    named = re.findall(r"`(diskless\.[a-z.]+?)(?:=[^`]*)?`", text)
    assert all(known(name) for name in named if name != "diskless.enable"), named


def test_metrics_in_the_docs_exist() -> None:
    # MRF-67: the page says everything that an operator can see or set.
    page = (ROOT / "docs" / "managed-replication.md").read_text()
    source = (ROOT / "src/skylog/broker/observe/partitions.py").read_text()
    for name in re.findall(r'_PREFIX}_(\w+)"', source):
        assert f"kafka_controller_diskless_{name}" in page or f"…_{name}" in page, name
    for name in BROKER:
        if name.startswith(("diskless.reassignment.", "diskless.placement.", "diskless.client.")):
            assert name in page, name


# systemd ----------------------------------------------------------------------------------------


def test_the_unit() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd" / "skylog.service")
    service = unit["Service"]
    assert service["ExecStart"].split()[1:] == ["server", "/etc/skylog/server.properties"]
    assert service["User"] == "skylog"
    # What a clean shutdown may take, with room to spare.
    session_ms = BROKER["broker.session.timeout.ms"].default
    assert isinstance(session_ms, int)
    assert int(service["TimeoutStopSec"]) * 1000 > 2 * session_ms
    assert unit["Install"]["WantedBy"] == "multi-user.target"


# Image and compose ------------------------------------------------------------------------------


def test_the_image_copies_what_there_is() -> None:
    lines = (DEPLOY / "docker" / "Dockerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ")]
    for path in (one for line in copied for one in line if not one.startswith(("/", "--"))):
        assert (ROOT / path).exists(), path
    for variable in re.findall(r"\bSKYLOG_[A-Z_]+", "\n".join(lines)):
        assert known(environment_name(variable)), variable
    assert 'ENTRYPOINT ["skylog"]' in lines


def compose() -> Any:
    return safe_load((DEPLOY / "compose" / "compose.yaml").read_text())


def test_the_nodes_of_compose_understand_their_settings(tmp_path: Path) -> None:
    services = compose()["services"]
    nodes = {name: service for name, service in services.items() if name.startswith("skylog-")}
    assert len(nodes) == 3
    found = [load_settings(None, dict(node["environment"])) for node in nodes.values()]
    assert sorted(settings.node.node_id for settings in found) == [1, 2, 3]
    assert sorted(settings.node.rack or "" for settings in found) == ["a", "b", "c"]
    for settings in found:
        assert settings.diskless.control_plane == "postgres"
        assert settings.node.process_roles == ("broker", "controller")
        voters = {voter.partition("@")[0] for voter in settings.quorum.voters}
        assert voters == {"1", "2", "3"}


def test_compose_hangs_together() -> None:
    found = compose()
    services, volumes = found["services"], found["volumes"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in volumes or (DEPLOY / "compose" / source).exists()
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "no port is open to other machines"
        if "build" in service:
            assert (DEPLOY / "compose" / service["build"]["context"]).resolve() == ROOT
    secret = services["skylog-1"]["environment"]["SKYLOG_DISKLESS_STORAGE_S3_SECRET_ACCESS_KEY"]
    assert services["s3"]["environment"]["MINIO_ROOT_PASSWORD"] == secret


def test_prometheus_reads_every_node_and_grafana_shows_every_dashboard() -> None:
    services = compose()["services"]
    (job,) = safe_load((DEPLOY / "compose" / "prometheus.yaml").read_text())["scrape_configs"]
    (nodes,) = job["static_configs"]
    assert nodes["targets"] == [f"{name}:9464" for name in services if name.startswith("skylog-")]
    provided = safe_load((DEPLOY / "compose" / "grafana" / "dashboards.yaml").read_text())
    (path,) = (provider["options"]["path"] for provider in provided["providers"])
    mounted = dict(volume.split(":")[1::-1] for volume in services["grafana"]["volumes"])
    assert (DEPLOY / "compose" / mounted[path]).resolve() == ROOT / "dashboards"
    source = safe_load((DEPLOY / "compose" / "grafana" / "datasource.yaml").read_text())
    assert {each["type"] for each in source["datasources"]} == {"prometheus"}


# The chart --------------------------------------------------------------------------------------


def values() -> Any:
    return safe_load((CHART / "values.yaml").read_text())


TEMPLATES = sorted((CHART / "templates").glob("*.yaml"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_name_values_that_there_are(template: Path) -> None:
    text = template.read_text()
    assert text.count("{{") == text.count("}}")
    opened = len(re.findall(r"{{-? *(?:range|if|with|define)\b", text))
    assert opened == len(re.findall(r"{{-? *end\b", text))
    for path in re.findall(r"\.Values((?:\.\w+)+)", text):
        found = values()
        for part in path.strip(".").split("."):
            assert part in found, path
            found = found[part]
    helpers = (CHART / "templates" / "_helpers.tpl").read_text()
    for name in re.findall(r'include "([\w.]+)"', text):
        assert f'define "{name}"' in helpers, name


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_are_yaml_once_they_are_filled_in(template: Path) -> None:
    lines = (
        line
        for line in template.read_text().splitlines()
        if not re.fullmatch(r" *{{-? *(?:range|if|end)\b.*}} *", line)
    )
    filled = re.sub(r"{{.*?}}", "x", "\n".join(lines))
    documents = [each for each in safe_load_all(filled) if each]
    assert documents
    for document in documents:
        assert document["kind"] in {"StatefulSet", "Service", "ConfigMap"}
        assert document["metadata"]["name"]


def test_the_chart_has_every_dashboard() -> None:
    template = (CHART / "templates" / "dashboards.yaml").read_text()
    (pattern,) = re.findall(r'Files.Glob "([^"]+)"', template)
    boards = sorted((ROOT / "dashboards").iterdir())
    assert sorted(path.resolve() for path in CHART.glob(pattern)) == boards
    # A ConfigMap has a mebibyte at most.
    assert sum(path.stat().st_size for path in boards) < 2**20


@pytest.mark.parametrize("role", ["controller", "broker"])
def test_the_nodes_of_the_chart_understand_their_settings(role: str, tmp_path: Path) -> None:
    template = (CHART / "templates" / f"{role}s.yaml").read_text()
    exported = dict(re.findall(r"export (SKYLOG_[A-Z_]+)=(.*)", template))
    exported["SKYLOG_NODE_ID"] = "1" if role == "controller" else "100"
    # Template expressions are filled with a name or a part of one.
    shell = {
        key: re.sub(r"{{.*?}}|\${.*?}", "x", text).strip('"') for key, text in exported.items()
    }
    common = (CHART / "templates" / "configmap.yaml").read_text().split("common.properties: |")[1]
    fixed = [line.strip() for line in common.splitlines() if re.match(r" +[a-z.]+=", line)]
    voters = ",".join(f"{number}@controller-{number}:9093" for number in (1, 2, 3))
    fixed = [re.sub(r"{{ include .*}}", voters, line) for line in fixed]
    chosen = [f"{name}={text}" for name, text in values()["settings"].items()]
    path = tmp_path / "common.properties"
    path.write_text("\n".join([*fixed, *chosen]))
    settings = load_settings(path, shell)
    assert settings.node.process_roles == (role,)
    assert is_for_production(settings)
