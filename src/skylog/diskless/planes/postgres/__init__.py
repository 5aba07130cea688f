"""The control plane in a Postgres database, for those who run one anyway."""

from skylog.diskless.planes.postgres.plane import PostgresPlane

__all__ = ["PostgresPlane"]
