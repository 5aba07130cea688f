"""Properties of a plane: its durability, and the background work that this broker does for it.

Retention, file deletion and the orphan scan are each done by one broker of the cluster, and only
the plane knows by which.

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
        """Whether this broker has the lowest id of those alive."""
        ...


class PlaneDuties(Protocol):
    """See ``plane.ControlPlane``. Answered at once, from what this broker knows."""

    @property
    def is_durable(self) -> bool:
        """Whether commits outlive the process, and all brokers of a cluster see them.

        If not, the plane is for one broker, and objects unknown to it may belong to others.
        """

    def owns(self, partition: TopicPartition) -> bool:
        """Whether this broker enforces the partition's retention; exactly one broker does."""

    def owns_files(self) -> bool:
        """Whether ``files_to_delete`` and ``known_topics`` may return work for this broker."""

    def is_caretaker(self) -> bool:
        """Whether this broker runs the cluster-wide orphan scan."""

    def reaches_all(self) -> bool:
        """Whether all coordinators can be reached now. If not, no object counts as an orphan."""

    def other_brokers(self) -> list[int]:
        """Those that have part of what ``describe_coordinators`` and ``list_files`` return."""
