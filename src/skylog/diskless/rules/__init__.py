"""Rules shared by all control planes, including the coordinator. Pure."""
