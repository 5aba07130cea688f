"""What a broker does in the background: retention, cleaning, compaction, backups."""
