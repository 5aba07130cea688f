"""Users' SCRAM credentials: what is stored can verify a password, not reveal it."""

from __future__ import annotations

from collections import Counter

from skylog.controller.image import ClusterImage
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result
from skylog.security.scram import ScramCredential, check_new_credential, check_user_and_mechanism
from skylog.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skylog.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from skylog.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from skylog.wire.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from skylog.wire.messages.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from skylog.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from skylog.wire.schema import Message

_Change = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_user_scram_credentials(
    state: ControllerState, _request: ControllerRequest, message: AlterUserScramCredentialsRequest
) -> Result[AlterUserScramCredentialsResponse]:
    """One result per user; a user that is named twice is not changed."""
    changes: list[_Change] = [*message.deletions, *message.upsertions]
    named = Counter(change.name for change in changes)
    results: dict[str, AlterUserScramCredentialsResult] = {}
    records: list[Message] = []
    for change in changes:
        if change.name in results:
            continue
        try:
            record = _alter(state, change)
            if named[change.name] > 1:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
        except KafkaError as error:
            results[change.name] = AlterUserScramCredentialsResult(
                change.name, error.code, error.message
            )
        else:
            records.append(record)
            results[change.name] = AlterUserScramCredentialsResult(change.name, 0, None)
    response = AlterUserScramCredentialsResponse(results=list(results.values()))
    return Result(response, bounded(records))


def _alter(state: ControllerState, change: _Change) -> Message:
    if isinstance(change, ScramCredentialDeletion):
        check_user_and_mechanism(change.name, change.mechanism)
        if state.image.scram_credential(change.name, change.mechanism) is None:
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
        return RemoveUserScramCredentialRecord(change.name, change.mechanism)
    mechanism = check_new_credential(change.name, change.mechanism, change.iterations)
    if not change.salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty password")
    credential = ScramCredential.from_salted(
        mechanism, bytes(change.salt), bytes(change.salted_password), change.iterations
    )
    return UserScramCredentialRecord(
        change.name,
        change.mechanism,
        credential.salt,
        credential.stored_key,
        credential.server_key,
        credential.iterations,
    )


def describe_user_scram_credentials(
    image: ClusterImage, message: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """The mechanisms of users; of all users if none is named."""
    named = Counter(user.name for user in message.users or ())
    users = named or Counter(image.scram.by_user)
    response = DescribeUserScramCredentialsResponse()
    for user, count in users.items():
        credentials = image.scram.by_user.get(user)
        result = DescribeUserScramCredentialsResult(user)
        if named and count > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = f"User {user} is named more than once in this request."
        elif credentials is None:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = f"User {user} has no credential."
        else:
            result.credential_infos = [
                CredentialInfo(mechanism, credentials[mechanism].iterations)
                for mechanism in sorted(credentials)
            ]
        response.results.append(result)
    return response
