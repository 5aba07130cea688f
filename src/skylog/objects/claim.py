"""The owner of a bucket.

A prefix of a bucket belongs to one cluster, which an object in it names. A node that starts on
empty disks formats itself as a new cluster, which knows none of the old one's objects: without the
claim it would take all of them for orphans, and delete the backups from which the old cluster could
be restored.
"""

from __future__ import annotations

from typing import Final

from skylog.kernel.errors import StorageError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import Exists, ObjectStore

KEY: Final = ObjectKey.named("backup", "owner", "cluster-id")
_BYTES_MAX: Final = 200


class BucketClaim:
    """The claim of one cluster."""

    def __init__(
        self, store: ObjectStore, cluster_id: str, setting: str = "diskless.storage.url"
    ) -> None:
        """``setting`` is the one that names the store."""
        self.store = store
        self._setting = setting
        self._cluster_id = cluster_id
        self._granted = False

    async def require(self) -> None:
        """StorageError if the bucket belongs to another cluster; once checked, it stays ours."""
        if self._granted:
            return
        try:
            await self.store.put(KEY, self._cluster_id.encode(), if_absent=True)
        except Exists as error:
            owner = (await self.store.get(KEY))[:_BYTES_MAX].decode(errors="replace")
            raise StorageError(
                f"the object store belongs to cluster {owner!r}, this one is {self._cluster_id}:"
                f" restore that cluster with skylog restore, or set {self._setting} to"
                " another prefix"
            ) from error
        self._granted = True
