"""The metadata quorum in one thread on virtual time: real machines, everything else a model."""
