"""A consolidating partition: assembled from the WAL, copied, pruned, expired, under faults."""
