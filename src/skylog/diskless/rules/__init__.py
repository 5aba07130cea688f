"""Rules that all control planes share, including the coordinator. Pure, and imported by all of
them."""
