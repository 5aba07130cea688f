"""Tiered storage: segments of partitions in Kafka's format, in the bucket."""
