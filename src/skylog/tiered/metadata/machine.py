"""The remote log of one partition, from the records of the metadata topic. Pure."""

from __future__ import annotations


class RemoteLog:
    """Which segments of a partition are remote, and what state they are in."""
