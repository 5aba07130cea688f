"""What a plane says of itself: how long it remembers, and which work for it falls to this broker.

Some of a plane's work nobody asks for: retention, deleting files, looking for orphans. Each piece
is done by one broker of the cluster, and only the plane knows which.

Pure: types only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from skylog.diskless.plane import TopicPartition


class Brokers(Protocol):
    """What cluster metadata says of the brokers that share a plane."""

    def leads(self, partition: TopicPartition) -> bool:
        """Whether this broker is the partition's leader."""
        ...

    def is_first(self) -> bool:
        """Whether no other broker that is alive has a lower id than this one."""
        ...


class PlaneDuties(Protocol):
    """See ``plane.ControlPlane``. Answered at once, from what this broker knows now."""

    @property
    def is_durable(self) -> bool:
        """Whether commits outlive the process, and all brokers of a cluster see them.

        If not, the plane is for one broker, and an object that it does not know may be anybody's.
        """

    def owns(self, partition: TopicPartition) -> bool:
        """Whether this broker enforces the partition's retention; one broker of a cluster does."""

    def owns_files(self) -> bool:
        """Whether ``files_to_delete`` and ``known_topics`` may tell of work for this broker."""

    def is_caretaker(self) -> bool:
        """Whether this broker does what one does for all: it looks for orphans in the store."""

    def reaches_all(self) -> bool:
        """Whether everyone who may know a file can be asked now. If not, none is an orphan."""

    def other_brokers(self) -> list[int]:
        """Those that have a part of what ``describe_coordinators`` and ``list_files`` tell."""
