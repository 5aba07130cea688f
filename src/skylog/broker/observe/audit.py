"""The authorizer, and a rate-limited log of its refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.kernel import limits
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.clock import Clock
from skylog.kernel.logging import get_logger
from skylog.security.authorizer import Authorizer
from skylog.security.principal import parse_super_users

if TYPE_CHECKING:
    from skylog.kernel.settings.sections import AccessSettings

log = get_logger("security.audit")


class RefusalLog:
    """Logs refusals; beyond a limit per second only their count, since clients can cause many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = 0
        self._logged = 0
        self._left_out = 0

    def __call__(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> None:
        second = self._clock.now_ms() // 1000
        if second != self._second:
            self._second, self._logged = second, 0
            if self._left_out:
                log.warning("refusals not logged", count=self._left_out)
                self._left_out = 0
        if self._logged >= limits.REFUSALS_LOGGED_PER_SECOND_MAX:
            self._left_out += 1
            return
        self._logged += 1
        log.info(
            "refused",
            principal=principal,
            host=host,
            operation=operation.name,
            resource=resource_type.name,
            name=name,
        )


def new_authorizer(settings: AccessSettings, clock: Clock) -> Authorizer | None:
    """The configured authorizer, if any."""
    if not settings.authorizer:
        return None
    return Authorizer(
        parse_super_users(settings.super_users),
        allow_if_no_acl=settings.allow_without_acl,
        on_denied=RefusalLog(clock),
    )
