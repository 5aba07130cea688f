"""Security metadata: ACLs, SCRAM credentials, tokens."""

from __future__ import annotations

from collections.abc import Iterator

from skylog.controller.image.delta import Delta
from skylog.kernel.errors import invariant
from skylog.kernel.ids import Uuid
from skylog.security.acls import AclBinding
from skylog.security.scram import ScramCredential
from skylog.wire.messages.access_control_entry_record import AccessControlEntryRecord
from skylog.wire.messages.delegation_token_record import DelegationTokenRecord
from skylog.wire.messages.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from skylog.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from skylog.wire.messages.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from skylog.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from skylog.wire.schema import Message


class Acls:
    """ACLs by id, and a lookup for duplicates."""

    def __init__(self) -> None:
        self.by_id: dict[Uuid, AclBinding] = {}
        self.existing: dict[AclBinding, Uuid] = {}

    def apply_add(self, record: AccessControlEntryRecord, delta: Delta) -> None:
        acl = AclBinding.of(record)
        self.by_id[record.id] = acl
        self.existing[acl] = record.id
        delta.acl_added(record.id, acl)

    def apply_remove(self, record: RemoveAccessControlEntryRecord, delta: Delta) -> None:
        acl = self.by_id.pop(record.id, None)
        if acl is None:
            invariant(False, f"acl {record.id} is there before it is removed")
            return
        self.existing.pop(acl, None)
        delta.acl_removed(record.id, acl)

    def records(self) -> Iterator[Message]:
        for acl_id, acl in self.by_id.items():
            yield AccessControlEntryRecord(
                id=acl_id,
                resource_type=int(acl.resource_type),
                resource_name=acl.resource_name,
                pattern_type=int(acl.pattern_type),
                principal=acl.principal,
                host=acl.host,
                operation=int(acl.operation),
                permission_type=int(acl.permission),
            )


class Scram:
    """Credentials by user, then by mechanism number."""

    def __init__(self) -> None:
        self.by_user: dict[str, dict[int, ScramCredential]] = {}

    def credential(self, user: str, mechanism: int) -> ScramCredential | None:
        return self.by_user.get(user, {}).get(mechanism)

    def apply_set(self, record: UserScramCredentialRecord, delta: Delta) -> None:
        self.by_user.setdefault(record.name, {})[record.mechanism] = ScramCredential(
            bytes(record.salt),
            bytes(record.stored_key),
            bytes(record.server_key),
            record.iterations,
        )
        delta.scram.add((record.name, record.mechanism))

    def apply_remove(self, record: RemoveUserScramCredentialRecord, delta: Delta) -> None:
        credentials = self.by_user.get(record.name, {})
        credentials.pop(record.mechanism, None)
        if not credentials:
            self.by_user.pop(record.name, None)
        delta.scram.add((record.name, record.mechanism))

    def records(self) -> Iterator[Message]:
        for user, credentials in self.by_user.items():
            for mechanism in sorted(credentials):
                found = credentials[mechanism]
                yield UserScramCredentialRecord(
                    user,
                    mechanism,
                    found.salt,
                    found.stored_key,
                    found.server_key,
                    found.iterations,
                )


class DelegationTokens:
    """Kept for clusters migrated from Kafka: we issue no tokens, but do not lose them either."""

    def __init__(self) -> None:
        self.by_id: dict[str, DelegationTokenRecord] = {}

    def apply_set(self, record: DelegationTokenRecord, _delta: Delta) -> None:
        self.by_id[record.token_id] = record

    def apply_remove(self, record: RemoveDelegationTokenRecord, _delta: Delta) -> None:
        self.by_id.pop(record.token_id, None)

    def records(self) -> Iterator[Message]:
        yield from self.by_id.values()
