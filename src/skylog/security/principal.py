"""Principals are text as ACLs write it, ``User:alice``: a type, a colon, a name."""

from __future__ import annotations

from typing import Final

USER_TYPE: Final = "User"
ANONYMOUS: Final = "User:ANONYMOUS"


def user_principal(name: str) -> str:
    """The principal of an authenticated user."""
    return f"{USER_TYPE}:{name}"


def principal_name(principal: str) -> str:
    """The part after the type; it may contain colons."""
    return principal.partition(":")[2]


def parse_super_users(text: str) -> frozenset[str]:
    """The setting ``super.users``: principals separated by semicolons. ValueError names an
    invalid one."""
    principals = {part.strip() for part in text.split(";") if part.strip()}
    for principal in principals:
        kind, _, name = principal.partition(":")
        if not kind or not name:
            raise ValueError(f"{principal!r} is not of the form principalType:principalName")
    return frozenset(principals)
