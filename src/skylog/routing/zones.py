"""Which zone a client is in: the ``broker.rack`` of the brokers beside it. Pure: texts only."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_TAG: Final = re.compile(r"(?:^|[ ,|])diskless_az=([^=,| ]*)")


def zone_of_client_id(client_id: str | None, racks: Collection[str]) -> str | None:
    """The zone named by ``diskless_az=`` in a client id, if there is such a rack.

    Frameworks add to the ids that they are given (``diskless_az=a-connector-3``): the longest rack
    counts that the value is, or begins with before a dash.
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
    """What the client says goes before what its listener says; None: nobody says anything."""
    known = {*racks, *by_listener.values()}
    return zone_of_client_id(client_id, known) or by_listener.get(listener.upper())
