"""``skylog groups``."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call
from skylog.cli.errors import counted, raise_failures
from skylog.cli.options import Bootstrap, ClientConfig, Json, Yes
from skylog.cli.output import confirm, print_json, print_table, say
from skylog.cli.reset_offsets import Plan, make_plan, parse_target, parse_topics
from skylog.client.admin import Admin
from skylog.client.admin.groups import GroupDescription, GroupListing
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import LATEST, CommittedOffset, OffsetAtTime
from skylog.kernel.errors import ErrorCode, KafkaError

app = new_app(
    group=True,
    help="List, describe and delete groups; see their lag, move their offsets.",
    epilog=examples("skylog groups list", "skylog groups describe billing"),
)

GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP", help="One group or more.")]

_LAG: Final = {
    "topic": "Topic",
    "partition": "Partition",
    "committed": "Committed",
    "end_offset": "End offset",
    "lag": "Lag",
    "member_id": "Member",
    "client_id": "Client id",
    "host": "Host",
}
_MEMBERS: Final = {
    "member_id": "Member",
    "instance_id": "Instance id",
    "client_id": "Client id",
    "host": "Host",
    "partitions": "Partitions",
}
_GONE: Final = "Dead"


@app.command("list", epilog=examples("skylog groups list", "skylog groups list --state Empty"))
def list_(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only groups in this state; repeatable."),
    ] = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """List groups."""

    async def work(cluster: Cluster) -> list[GroupListing]:
        return await Admin(cluster).groups.list_all(states=state or ())

    rows = [
        {
            "group": group.group_id,
            "type": group.type,
            "protocol": group.protocol_type,
            "state": group.state,
            "coordinator": group.coordinator,
        }
        for group in call(work, bootstrap, client_config)
    ]
    if json:
        print_json(rows)
        return
    columns = {
        "group": "Group",
        "type": "Type",
        "protocol": "Protocol",
        "state": "State",
        "coordinator": "Coordinator",
    }
    print_table(columns, rows)
    if not rows:
        say("there are no such groups; `skylog consume TOPIC --group NAME` creates one")


@app.command(
    epilog=examples(
        "skylog groups describe billing",
        "skylog groups describe billing --members",
        "skylog groups describe billing --json | jq '[.[].partitions[].lag] | add'",
    )
)
def describe(
    groups: GroupNames,
    members: Annotated[
        bool, typer.Option("--members", help="Show members instead of partitions.")
    ] = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show a group's state, committed offsets and lag."""

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        admin = Admin(cluster)
        found = await _existing(admin, groups)
        return [await _description(admin, group) for group in found]

    described = call(work, bootstrap, client_config)
    if json:
        print_json(described)
        return
    for group in described:
        print(
            f"{group['group']}: {group['type']} group, {group['state']}, "
            f"{counted(len(group['members']), 'member')}, {_lag(group['partitions'])}"
        )
        if members:
            print_table(_MEMBERS, group["members"])
        else:
            print_table(_LAG, group["partitions"])


def _lag(rows: list[dict[str, Any]]) -> str:
    known = [row["lag"] for row in rows if row["lag"] is not None]
    missing = len(rows) - len(known)
    more = f" (unknown for {counted(missing, 'partition')})" if missing else ""
    return f"lag {sum(known):,}{more}"


async def _existing(admin: Admin, names: list[str]) -> list[GroupDescription]:
    """The groups, or an error that names every missing one."""
    found: dict[str, GroupDescription | KafkaError] = {}
    for name, group in (await admin.groups.describe(list(dict.fromkeys(names)))).items():
        gone = isinstance(group, GroupDescription) and group.state == _GONE
        found[name] = (
            KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {name} does not exist")
            if gone or (isinstance(group, KafkaError) and _is_not_found(group))
            else group
        )
    raise_failures(found)
    return [group for group in found.values() if isinstance(group, GroupDescription)]


def _is_not_found(error: KafkaError) -> bool:
    return error.code is ErrorCode.GROUP_ID_NOT_FOUND


async def _description(admin: Admin, group: GroupDescription) -> dict[str, Any]:
    committed = await admin.groups.offsets(group.group_id)
    owners = {key: member for member in group.members for key in member.assignment}
    keys = sorted({*committed, *owners})
    ends = await admin.partitions.offsets(dict.fromkeys(keys, LATEST))
    rows = []
    for key in keys:
        offset = committed[key].offset if key in committed else None
        found = ends.get(key)
        end = found.offset if isinstance(found, OffsetAtTime) else None
        owner = owners.get(key)
        rows.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "committed": offset,
                "end_offset": end,
                "lag": max(end - offset, 0) if end is not None and offset is not None else None,
                "member_id": owner.member_id if owner else None,
                "client_id": owner.client_id if owner else None,
                "host": owner.host if owner else None,
            }
        )
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": [str(key) for key in sorted(member.assignment)],
        }
        for member in group.members
    ]
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.protocol,
        "members": members,
        "partitions": rows,
    }


@app.command(epilog=examples("skylog groups delete billing", "skylog groups delete a b --yes"))
def delete(
    groups: GroupNames,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Delete groups without members, with all committed offsets."""
    names = list(dict.fromkeys(groups))
    confirm(f"Delete {', '.join(names)} with all committed offsets?", yes=yes)

    async def work(cluster: Cluster) -> None:
        admin = Admin(cluster)
        for group in await _existing(admin, names):
            if group.members:
                raise _has_members(group)
        raise_failures(await admin.groups.delete(names))

    call(work, bootstrap, client_config)
    if json:
        print_json([{"group": name, "deleted": True} for name in names])
        return
    for name in names:
        print(f"{name} deleted")


def _has_members(group: GroupDescription) -> KafkaError:
    return KafkaError(
        ErrorCode.NON_EMPTY_GROUP,
        f"group {group.group_id} has {counted(len(group.members), 'member')}",
    )


@app.command(
    "reset-offsets",
    epilog=examples(
        "skylog groups reset-offsets billing --topic orders --to earliest",
        "skylog groups reset-offsets billing --topic orders:0,2 --to 1000 --execute",
        "skylog groups reset-offsets billing --all-topics --to 2026-07-01T12:00:00Z --execute",
        "skylog groups reset-offsets billing --all-topics --to -2h --execute",
        "skylog groups reset-offsets billing --all-topics --shift -100 --execute",
    ),
)
def reset_offsets(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="A group without members.")],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC[:0,1]", help="A topic or some partitions of it; repeatable."
        ),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All partitions that the group has committed.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="Target: earliest, latest, current, an offset, a time such as "
            "2026-07-01T12:00:00Z, "
            "or an age such as -2h (s, m, h, d).",
        ),
    ] = None,
    shift: Annotated[
        int | None,
        typer.Option("--shift", metavar="N", help="Move by N records, backwards if < 0."),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Execute the plan instead of only showing it.")
    ] = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Move the committed offsets of a group without members.

    Offsets beyond the ends of a partition are clamped to its first or end offset.
    """
    if bool(topic) == all_topics:
        raise typer.BadParameter("give either --topic or --all-topics")
    target = parse_target(to, shift)
    wanted = parse_topics(topic) if topic else None

    async def work(cluster: Cluster) -> list[Plan]:
        admin = Admin(cluster)
        found = await admin.groups.describe([group])
        described = found[group]
        if isinstance(described, GroupDescription) and described.members:
            raise _has_members(described)
        if isinstance(described, KafkaError) and not _is_not_found(described):
            raise described
        plan = await make_plan(cluster, group, wanted, target)
        if execute:
            offsets = {
                TopicPartition(step.topic, step.partition): CommittedOffset(step.new_offset)
                for step in plan
            }
            failed = await admin.groups.alter_offsets(group, offsets)
            raise_failures({str(key): error for key, error in failed.items()})
        return plan

    _show_plan(call(work, bootstrap, client_config), execute=execute, json=json)


def _show_plan(plan: list[Plan], *, execute: bool, json: bool) -> None:
    rows = [step._asdict() for step in plan]
    if json:
        print_json({"executed": execute, "partitions": rows})
        return
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "old_offset": "Committed",
        "new_offset": "New offset",
    }
    print_table(columns, rows)
    print("done" if execute else "nothing was changed; use --execute to apply")
