"""What a broker does unasked: retention, cleaning, compaction, backups."""
