"""The authorizer's index against the rules written as plainly as possible."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.acl import AclOperation as Op
from skylog.kernel.acl import AclPermissionType as Permission
from skylog.kernel.acl import PatternType, ResourceType
from skylog.kernel.ids import Uuid
from skylog.security import authorizer as module
from skylog.security.acls import AclFilter, operation_bits, supported_operations
from skylog.security.authorizer import Authorizer

OPERATIONS = [
    Op.ALL,
    Op.READ,
    Op.WRITE,
    Op.DESCRIBE,
    Op.ALTER,
    Op.DESCRIBE_CONFIGS,
    Op.ALTER_CONFIGS,
]
NAMES = ["*", "a", "ab", "abc", "b", "ba"]
PRINCIPALS = ["User:u", "User:v", "User:*"]
HOSTS = ["*", "h1", "h2"]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]

acls = st.builds(
    SimpleNamespace,
    resource_type=st.sampled_from(TYPES),
    resource_name=st.sampled_from(NAMES),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    operation=st.sampled_from(OPERATIONS),
    permission_type=st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
)
questions = st.tuples(
    st.sampled_from(PRINCIPALS[:2]),
    st.sampled_from(["h1", "h2", "h3"]),
    st.sampled_from(OPERATIONS[1:]),
    st.sampled_from(TYPES),
    st.sampled_from([*NAMES, "abd", "zzz"]),
)
IMPLIES = {
    Op.DESCRIBE: {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER},
    Op.DESCRIBE_CONFIGS: {Op.ALTER_CONFIGS},
}


def covers(acl: SimpleNamespace, resource_type: ResourceType, name: str) -> bool:
    if acl.resource_type is not resource_type:
        return False
    if acl.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in ("*", name)


def model(
    known: list[SimpleNamespace],
    default: bool,
    who: str,
    host: str,
    op: Op,
    resource_type: ResourceType,
    name: str,
) -> bool:
    covering = [acl for acl in known if covers(acl, resource_type, name)]
    if not covering:
        return default
    mine = [acl for acl in covering if acl.principal in (who, "User:*") and acl.host in ("*", host)]
    if any(
        acl.permission_type is Permission.DENY and acl.operation in (Op.ALL, op) for acl in mine
    ):
        return False
    return any(
        acl.permission_type is Permission.ALLOW
        and acl.operation in {Op.ALL, op, *IMPLIES.get(op, ())}
        for acl in mine
    )


def identity(index: int) -> Uuid:
    return Uuid(index.to_bytes(16, "big"))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(acls, st.booleans()), max_size=12),
    st.lists(questions, min_size=1, max_size=12),
    st.booleans(),
)
def test_decisions_agree_with_the_model(
    steps: list[tuple[SimpleNamespace, bool]],
    asked: list[tuple[str, str, Op, ResourceType, str]],
    default: bool,
) -> None:
    authorizer = Authorizer(["User:root"], allow_if_no_acl=default)
    known: dict[Uuid, SimpleNamespace] = {}
    for index, (acl, then_drop) in enumerate(steps):
        authorizer.add(identity(index), acl)
        known[identity(index)] = acl
        if then_drop:  # an earlier one
            authorizer.remove(identity(index // 2))
            known.pop(identity(index // 2), None)
        for question in asked:
            expected = model(list(known.values()), default, *question)
            assert authorizer.authorize(*question) is expected
            assert authorizer.authorize("User:root", *question[1:])
    reloaded = Authorizer(["User:root"], allow_if_no_acl=default)
    for acl_id, acl in known.items():
        reloaded.add(acl_id, acl)
    assert len(reloaded) == len(authorizer) == len(known)
    for question in asked:
        assert reloaded.authorize(*question) is authorizer.authorize(*question)
        who, host, _, resource_type, name = question
        assert reloaded.authorized_operations(who, host, resource_type, name) == operation_bits(
            [
                op
                for op in supported_operations(resource_type)
                if model(list(known.values()), default, who, host, op, resource_type, name)
            ]
        )


@settings(max_examples=100, deadline=None)
@given(st.lists(acls, max_size=8), st.sampled_from(["User:u", "User:v"]))
def test_any_resource_of_a_type(known: list[SimpleNamespace], who: str) -> None:
    """Allowed by type means that some name is allowed."""
    authorizer = Authorizer()
    for index, acl in enumerate(known):
        authorizer.add(identity(index), acl)
    by_type = authorizer.authorize_by_resource_type(who, "h1", Op.WRITE, ResourceType.TOPIC)
    # The names themselves, and for each pattern one name that no other pattern has.
    names = [*NAMES, *(name + "~" for name in NAMES), "hardcode"]
    allowed = any(model(known, False, who, "h1", Op.WRITE, ResourceType.TOPIC, n) for n in names)
    assert by_type is allowed


def entry(**changes: object) -> SimpleNamespace:
    defaults = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "t",
        "host": "*",
        "pattern_type": PatternType.LITERAL,
        "principal": "User:u",
        "operation": Op.READ,
        "permission_type": Permission.ALLOW,
    }
    return SimpleNamespace(**{**defaults, **changes})


def test_by_type_a_super_user_passes_a_deny_of_everything() -> None:
    authorizer = Authorizer(["User:root"])
    deny = entry(resource_name="*", principal="User:*", permission_type=Permission.DENY)
    authorizer.add(identity(1), deny)
    authorizer.add(identity(2), entry())
    assert authorizer.authorize_by_resource_type("User:root", "h", Op.READ, ResourceType.TOPIC)
    assert not authorizer.authorize_by_resource_type("User:u", "h", Op.READ, ResourceType.TOPIC)
    authorizer.remove(identity(1))
    assert authorizer.authorize_by_resource_type("User:u", "h", Op.READ, ResourceType.TOPIC)


def test_refusals_are_audited_unless_the_caller_opts_out() -> None:
    heard: list[object] = []
    authorizer = Authorizer(on_denied=lambda *refusal: heard.append(refusal))
    question = ("User:u", "h", Op.READ, ResourceType.TOPIC, "t")
    authorizer.authorize(*question, audit=False)
    authorizer.authorized_operations("User:u", "h", ResourceType.TOPIC, "t")
    assert not heard
    authorizer.authorize(*question)
    authorizer.authorize(*question)
    assert heard == [question, question]


def test_acls_are_found_by_filter() -> None:
    authorizer = Authorizer()
    authorizer.add(identity(1), entry())
    authorizer.add(identity(2), entry(principal="User:v"))
    authorizer.add(identity(1), entry(principal="User:w"))  # the same id: replaced
    assert {acl.principal for _, acl in authorizer.find(AclFilter())} == {"User:v", "User:w"}
    assert [key for key, _ in authorizer.find(AclFilter(principal="User:w"))] == [identity(1)]


def test_remembered_decisions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DECISIONS_MAX", 3)
    authorizer = Authorizer()
    for index in range(10):
        authorizer.authorize("User:u", "h", Op.READ, ResourceType.TOPIC, f"t{index}")
        assert len(authorizer._decisions) <= 3
    authorizer._decisions.clear()
    authorizer.authorize("User:u", "h", Op.READ, ResourceType.TOPIC, "t" * 256)
    assert not authorizer._decisions
    authorizer.authorize("User:u", "h", Op.READ, ResourceType.TOPIC, "t" * 255)
    assert authorizer._decisions
