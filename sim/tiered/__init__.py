"""A tiered partition on two or three brokers: copied, expired, led by turns, under faults."""
