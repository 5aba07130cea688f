"""The zone of a client: the ``broker.rack`` of nearby brokers. Pure: text only."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_TAG: Final = re.compile(r"(?:^|[ ,|])diskless_az=([^=,| ]*)")


def zone_of_client_id(client_id: str | None, racks: Collection[str]) -> str | None:
    """The zone named by ``diskless_az=`` in a client id, if there is such a rack.

    Frameworks append to client ids (``diskless_az=a-connector-3``): the longest rack counts that
    equals the value, or is its prefix before a dash.
    """
    found = _TAG.search(client_id or "")
    if found is None:
        return None
    value = found[1]
    fitting = [rack for rack in racks if value == rack or value.startswith(f"{rack}-")]
    return max(fitting, key=len, default=None)


def zone_of_client(
    client_id: str | None, listener: str, racks: Collection[str], by_listener: Mapping[str, str]
) -> str | None:
    """The client's own zone takes precedence over its listener's; None if neither is known."""
    known = {*racks, *by_listener.values()}
    return zone_of_client_id(client_id, known) or by_listener.get(listener.upper())
