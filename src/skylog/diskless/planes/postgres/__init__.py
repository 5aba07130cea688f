"""The control plane in a Postgres database."""

from skylog.diskless.planes.postgres.plane import PostgresPlane

__all__ = ["PostgresPlane"]
