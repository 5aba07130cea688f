"""A cluster with an authorizer and the users of the matrix, of skylog or of Kafka."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from skylog.kernel.acl import AclOperation, ResourceType
from skylog.wire.apis import ApiKey
from skylog.wire.messages import create_acls_request, delete_acls_request
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tests.integration.auth_cases import ALLOW, ANY, CASES, DENY, LITERAL, Things, errors_in
from tests.integration.wire_client import Wire

ADMIN, ALICE = "admin", "alice"
PASSWORDS = {ADMIN: "admin-secret", ALICE: "alice-secret"}
Named = tuple[AclOperation, ResourceType, str]
_ATTEMPTS = 500


def jaas() -> str:
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'{module} required username="{ADMIN}" password="{PASSWORDS[ADMIN]}" {users};'


SETTINGS = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas(),
    "listener.name.controller.plain.sasl.jaas.config": jaas(),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "connection.failed.authentication.delay.ms": "1",
    "super.users": f"User:{ADMIN}",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(slots=True)
class World:
    """The addresses of listeners, and the super user's tools."""

    plaintext: str
    sasl: str
    controller: str
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _admin: Wire | None = None

    @property
    def admin(self) -> Wire:
        if self._admin is None:
            self._admin = self.connect(ADMIN)
        return self._admin

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()

    def connect(self, user: str | None, *, controller: bool = False) -> Wire:
        """A connection of a user, or (None) without authentication."""
        if user is None:
            return Wire(self.plaintext)
        return Wire(self.controller if controller else self.sasl).log_in(user, PASSWORDS[user])

    def things(self) -> Things:
        """A new topic with a record, a group with an offset, and an ACL."""
        number = next(self._numbers)
        name = f"topic-{number}"
        created = self.admin.ask(CreateTopicsRequest([CreatableTopic(name, 1, 1)]))
        cluster_id = self.admin.ask(DescribeClusterRequest()).cluster_id
        things = Things(name, created.topics[0].topic_id, f"group-{number}", cluster_id)
        self.until_done(ApiKey.PRODUCE, things)
        self.admin.ask(FindCoordinatorRequest(coordinator_keys=[things.group]))
        self.until_done(ApiKey.OFFSET_COMMIT, things)
        self.change_acls(
            "User:ghost", [(AclOperation.READ, ResourceType.TOPIC, name)], permission=DENY
        )
        return things

    def until_done(self, api: ApiKey, things: Things) -> None:
        """A topic that has just been created, or a coordinator, may need a moment."""
        for _ in range(_ATTEMPTS):
            answer = self.admin.ask(CASES[api].build(things, 1 << 15))
            if not errors_in(answer):
                return
        raise AssertionError(answer)

    def change_acls(
        self, principal: str, grants: Iterable[Named], *, permission: int = ALLOW
    ) -> None:
        m = create_acls_request
        request = m.CreateAclsRequest(
            [
                m.AclCreation(resource, name, LITERAL, principal, "*", operation, permission)
                for operation, resource, name in grants
            ]
        )
        assert not errors_in(self.admin.ask(request))

    def revoke_all(self, principal: str) -> None:
        m = delete_acls_request
        every = m.DeleteAclsFilter(ANY, None, ANY, principal, None, ANY, ANY)
        assert not errors_in(self.admin.ask(m.DeleteAclsRequest([every])))
