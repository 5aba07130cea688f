"""Leaders and followers of one partition, their controller, and everything that goes wrong."""
