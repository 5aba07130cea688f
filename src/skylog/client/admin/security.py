"""ACLs, SCRAM users and client quotas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from skylog.client.admin.ask import ask_any, ask_controller, outcome
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.kernel.errors import KafkaError
from skylog.kernel.secret import Secret
from skylog.security.acls import AclBinding, AclFilter
from skylog.security.scram import ITERATIONS_MIN, ScramMechanism
from skylog.wire.messages import alter_client_quotas_request as quotas
from skylog.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse
from skylog.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skylog.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from skylog.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from skylog.wire.messages.create_acls_response import CreateAclsResponse
from skylog.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from skylog.wire.messages.delete_acls_response import DeleteAclsResponse
from skylog.wire.messages.describe_acls_request import DescribeAclsRequest
from skylog.wire.messages.describe_acls_response import DescribeAclsResponse
from skylog.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from skylog.wire.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from skylog.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from skylog.wire.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)

# A quota's entity: pairs of type (user, client-id, ip) and name, None for the default.
QuotaEntity = tuple[tuple[str, str | None], ...]
_SALT_BYTES: Final = 24
_EXACT, _DEFAULT, _ANY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user to create."""

    name: str
    mechanism: ScramMechanism
    password: Secret
    iterations: int = ITERATIONS_MIN


class SecurityAdmin:
    """Passwords are salted and hashed here; they are not sent."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # ACLs ---------------------------------------------------------------------------------

    async def create_acls(
        self, acls: Collection[AclBinding]
    ) -> dict[AclBinding, KafkaError | None]:
        request = CreateAclsRequest([_creation(acl) for acl in acls])
        answer: CreateAclsResponse = await ask_controller(
            self._cluster, request, lambda got: (result.error_code for result in got.results)
        )
        return {
            acl: outcome(result.error_code, result.error_message)
            for acl, result in zip(acls, answer.results, strict=True)
        }

    async def describe_acls(self, chosen: AclFilter | None = None) -> list[AclBinding]:
        wanted = chosen or AclFilter()
        request = DescribeAclsRequest(
            wanted.resource_type,
            wanted.resource_name,
            wanted.pattern_type,
            wanted.principal,
            wanted.host,
            wanted.operation,
            wanted.permission,
        )
        answer: DescribeAclsResponse = await ask_any(self._cluster, request)
        check(answer.error_code, answer.error_message)
        return [
            AclBinding.of_numbers(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        ]

    async def delete_acls(
        self, chosen: Collection[AclFilter]
    ) -> dict[AclFilter, list[AclBinding] | KafkaError]:
        """Delete the ACLs that filters match; returns the deleted ones, by filter."""
        filters = [
            DeleteAclsFilter(
                wanted.resource_type,
                wanted.resource_name,
                wanted.pattern_type,
                wanted.principal,
                wanted.host,
                wanted.operation,
                wanted.permission,
            )
            for wanted in chosen
        ]
        answer: DeleteAclsResponse = await ask_controller(
            self._cluster,
            DeleteAclsRequest(filters),
            lambda got: (result.error_code for result in got.filter_results),
        )
        found: dict[AclFilter, list[AclBinding] | KafkaError] = {}
        for wanted, result in zip(chosen, answer.filter_results, strict=True):
            found[wanted] = outcome(result.error_code, result.error_message) or [
                AclBinding.of(acl) for acl in result.matching_acls if not acl.error_code
            ]
        return found

    # SCRAM users --------------------------------------------------------------------------

    async def alter_users(
        self,
        upsert: Collection[ScramUser] = (),
        delete: Collection[tuple[str, ScramMechanism]] = (),
    ) -> dict[str, KafkaError | None]:
        upsertions = [await self._upsertion(user) for user in upsert]
        deletions = [ScramCredentialDeletion(name, kind.type) for name, kind in delete]
        answer: AlterUserScramCredentialsResponse = await ask_controller(
            self._cluster,
            AlterUserScramCredentialsRequest(deletions, upsertions),
            lambda got: (result.error_code for result in got.results),
        )
        return {
            result.user: outcome(result.error_code, result.error_message)
            for result in answer.results
        }

    async def _upsertion(self, user: ScramUser) -> ScramCredentialUpsertion:
        salt = self._cluster.system.rng.randbytes(_SALT_BYTES)
        password = user.password.reveal()
        salted = await self._cluster.system.executor.run(
            lambda: user.mechanism.salted_password(password, salt, user.iterations)
        )
        return ScramCredentialUpsertion(
            user.name, user.mechanism.type, user.iterations, salt, salted
        )

    async def describe_users(
        self, names: Collection[str] | None = None
    ) -> dict[str, list[tuple[ScramMechanism, int]] | KafkaError]:
        """Mechanisms and iterations by user, of all users or some."""
        users = None if names is None else [UserName(name) for name in names]
        answer: DescribeUserScramCredentialsResponse = await ask_any(
            self._cluster, DescribeUserScramCredentialsRequest(users)
        )
        check(answer.error_code, answer.error_message)
        found: dict[str, list[tuple[ScramMechanism, int]] | KafkaError] = {}
        for result in answer.results:
            found[result.user] = outcome(result.error_code, result.error_message) or [
                (ScramMechanism.of_type(info.mechanism), info.iterations)
                for info in result.credential_infos
            ]
        return found

    # Client quotas ------------------------------------------------------------------------

    async def alter_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
    ) -> dict[QuotaEntity, KafkaError | None]:
        """Set quotas of entities, or (None) remove them."""
        entries = [
            quotas.EntryData(
                [quotas.EntityData(kind, name) for kind, name in entity],
                [
                    quotas.OpData(key, value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in changes.items()
        ]
        answer: AlterClientQuotasResponse = await ask_controller(
            self._cluster,
            quotas.AlterClientQuotasRequest(entries, validate_only),
            lambda got: (entry.error_code for entry in got.entries),
        )
        return {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): outcome(
                entry.error_code, entry.error_message
            )
            for entry in answer.entries
        }

    async def describe_quotas(
        self, entity: Mapping[str, str | None] | None = None, *, any_of: Collection[str] = ()
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Quotas whose entity has these names (None: the default) and any name of other types.

        All quotas if neither is given.
        """
        components = [
            ComponentData(kind, _DEFAULT if name is None else _EXACT, name)
            for kind, name in (entity or {}).items()
        ]
        components += [ComponentData(kind, _ANY, None) for kind in any_of]
        request = DescribeClientQuotasRequest(components, strict=bool(components))
        answer: DescribeClientQuotasResponse = await ask_any(self._cluster, request)
        check(answer.error_code, answer.error_message)
        return {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in answer.entries or []
        }


def _creation(acl: AclBinding) -> AclCreation:
    return AclCreation(
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )
