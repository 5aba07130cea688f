"""A state in 64 hex digits: equal digests of leader, follower and replay prove them equal."""

from __future__ import annotations

import hashlib
from typing import Any

from skylog.replicated.log import RecordCodec
from skylog.replicated.machine import Machine


def state_digest(machine: Machine[Any], codec: RecordCodec) -> str:
    digest = hashlib.sha256()
    for record in machine.snapshot():
        for part in codec.encode(record):
            # Length first, so that records cannot run together; -1 distinguishes null from empty.
            digest.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
            digest.update(part or b"")
    return digest.hexdigest()
