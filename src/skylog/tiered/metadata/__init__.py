"""The metadata of remote segments: the machine, the topic, following it."""
