"""The job ``table``: a topic into Parquet files or an Iceberg table.

Rows are written chunk by chunk. A chunk is a range of offsets of each partition; its files and the
table's new end offsets are committed in one step, so each record is exactly once in the table, or
in the table of bad rows.
"""
