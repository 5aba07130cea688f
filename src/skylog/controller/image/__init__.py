"""The cluster as described by its metadata log."""

from __future__ import annotations

from skylog.controller.image.cluster import ClusterImage
from skylog.controller.image.delta import Delta

__all__ = ["ClusterImage", "Delta"]
