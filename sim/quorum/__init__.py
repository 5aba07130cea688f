"""The metadata quorum in one thread on virtual time: real state machines, everything else a
model."""
