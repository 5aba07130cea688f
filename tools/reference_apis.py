"""docs/reference/apis.md: the dispatch table as a page."""

from __future__ import annotations

from skylog.broker.net.dispatch import Permission, Row
from skylog.broker.net.table import PRODUCE_OFFERED_FROM, broker_table, controller_table
from skylog.wire.apis import ApiKey

INTRODUCTION = """# APIs

Every API that brokers and controllers serve: its versions, and the permission that a client needs
if an authorizer is configured. A permission on the cluster is checked before the handler runs, one
on topics or groups for each of them in the request. ApiVersions does not list an API or version
that is not in this table, and a request for it closes the connection, as in Kafka. *unlisted*: for
skylog's own tools; ApiVersions does not list it, either.
"""


def apis_page(generated: str) -> str:
    broker, controller = broker_table(), controller_table()
    lines = [
        *(generated, "", INTRODUCTION),
        "| Key | API | Versions | Listeners | Permission |",
        "|---|---|---|---|---|",
    ]
    for key in sorted({*broker, *controller}):
        row = broker.get(key) or controller[key]
        where = [n for n, table in (("broker", broker), ("controller", controller)) if key in table]
        cells = (str(int(key)), key.name, versions(key, row), ", ".join(where))
        lines.append(f"| {' | '.join(cells)} | {permission(row.permission)} |")
    return "\n".join(lines) + "\n"


def versions(key: ApiKey, row: Row) -> str:
    text = f"{row.versions.low}–{row.versions.high}"
    if key is ApiKey.PRODUCE:
        return f"{text} (offered from {PRODUCE_OFFERED_FROM}, as by Kafka)"
    return f"{text}, *unlisted*" if row.unlisted else text


def permission(needed: Permission | None) -> str:
    return "" if needed is None else f"{needed.operation.name} on {needed.resource.name}"
