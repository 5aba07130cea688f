"""The partitions that a broker serves: one port, one implementation for each kind, one factory."""
