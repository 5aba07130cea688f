"""A broker with authentication and ACLs."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from skylog.testing import Broker
from tests.spark.support import Topics

ADMIN = "admin"
USERS = (ADMIN, "alice", "bob")
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_USERS = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
_JAAS = f'{LOGIN} username="{ADMIN}" password="{ADMIN}-secret" {_USERS};'
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS,
    "listener.name.controller.plain.sasl.jaas.config": _JAAS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "connection.failed.authentication.delay.ms": "1",
    "super.users": f"User:{ADMIN}",
}


class Secured:
    """``with Secured() as secured``: its users are ``USERS``; only the admin may do everything."""

    def __init__(self) -> None:
        self._broker = Broker(SETTINGS)

    def __enter__(self) -> Self:
        self._broker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._broker.stop()

    @property
    def bootstrap(self) -> str:
        return self._broker.address("SASL_PLAINTEXT")

    def topics(self, user: str) -> Topics:
        """Topics through librdkafka as a user."""
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
        }
        return Topics(self.bootstrap, **login)

    def options(self, user: str, password: str | None = None) -> dict[str, str]:
        """The options of a query of that user."""
        secret = password or f"{user}-secret"
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": f'{LOGIN} username="{user}" password="{secret}";',
        }

    def allow(
        self,
        user: str,
        operation: AclOperation,
        name: str,
        kind: ResourceType = ResourceType.TOPIC,
    ) -> None:
        """Add an ACL for a user."""
        binding = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        admin = self.topics(ADMIN).admin
        admin.create_acls([binding])[binding].result()
