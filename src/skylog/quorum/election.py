"""What a node must remember of an election: the content of Kafka's ``quorum-state``, version 1.

A node that has voted or led in an epoch must not forget it: it could vote twice, or write two
different records under one offset and epoch. So this is on disk before the node acts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.quorum.voters import ReplicaKey

_VERSIONS: Final = (0, 1)
_NO_NODE: Final = -1


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The epoch, its leader if there is one, and the replica that this node has voted for."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None

    def to_json(self) -> str:
        voted = self.voted or ReplicaKey(_NO_NODE, ZERO_UUID)
        fields = {
            "leaderId": _NO_NODE if self.leader_id is None else self.leader_id,
            "leaderEpoch": self.epoch,
            "votedId": voted.id,
            "votedDirectoryId": str(voted.directory_id),
            "data_version": 1,
        }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> ElectionState:
        """Read version 0 or 1; raises ValueError for anything else."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        version = _integer(fields, "data_version")
        if version not in _VERSIONS:
            raise ValueError(f"data_version {version} is not one of {_VERSIONS}")
        leader_id, voted_id = _integer(fields, "leaderId"), _integer(fields, "votedId")
        directory_id = Uuid.parse(str(fields["votedDirectoryId"])) if version else ZERO_UUID
        return cls(
            epoch=_integer(fields, "leaderEpoch"),
            leader_id=None if leader_id < 0 else leader_id,
            voted=None if voted_id < 0 else ReplicaKey(voted_id, directory_id),
        )


def _integer(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, not a number")
    return value
