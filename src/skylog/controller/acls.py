"""Creating, deleting and listing ACLs."""

from __future__ import annotations

from skylog.controller.draws import Draws
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import CONTROLLER_RECORDS_PER_REQUEST_MAX
from skylog.replicated.machine import Result
from skylog.security.acls import AclBinding, AclFilter, validate
from skylog.wire.messages.access_control_entry_record import AccessControlEntryRecord
from skylog.wire.messages.create_acls_request import CreateAclsRequest
from skylog.wire.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from skylog.wire.messages.delete_acls_request import DeleteAclsRequest
from skylog.wire.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from skylog.wire.messages.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from skylog.wire.schema import Message


def create_acls(
    state: ControllerState, request: ControllerRequest, message: CreateAclsRequest
) -> Result[CreateAclsResponse]:
    """One that exists already is created again without a record."""
    draws = Draws(request.seed)
    response = CreateAclsResponse()
    created: dict[AclBinding, Message] = {}
    for creation in message.creations:
        acl = AclBinding.of_creation(creation)
        result = AclCreationResult()
        try:
            validate(acl)
        except KafkaError as error:
            result = AclCreationResult(error.code, error.message)
        else:
            if acl not in state.image.acls.existing and acl not in created:
                created[acl] = AccessControlEntryRecord(
                    id=draws.uuid(),
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
        response.results.append(result)
    return Result(response, bounded(list(created.values())))


def delete_acls(
    state: ControllerState, _request: ControllerRequest, message: DeleteAclsRequest
) -> Result[DeleteAclsResponse]:
    """An ACL that several filters choose is in the answer to each, and removed once."""
    response = DeleteAclsResponse()
    matches = 0
    removed: dict[bytes, Message] = {}
    for wanted in message.filters:
        result = DeleteAclsFilterResult(0, None)
        response.filter_results.append(result)
        try:
            chosen = AclFilter.of(wanted)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
            continue
        for acl_id, acl in state.image.acls.by_id.items():
            if chosen.matches(acl):
                removed[acl_id] = RemoveAccessControlEntryRecord(acl_id)
                result.matching_acls.append(
                    DeleteAclsMatchingAcl(
                        0,
                        None,
                        acl.resource_type,
                        acl.resource_name,
                        acl.pattern_type,
                        acl.principal,
                        acl.host,
                        acl.operation,
                        acl.permission,
                    )
                )
        matches += len(result.matching_acls)
        if matches > CONTROLLER_RECORDS_PER_REQUEST_MAX:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "The filters match too many ACLs at once.")
    return Result(response, list(removed.values()))
