"""Sockets, frames, dispatch: from a connection's bytes to a handler and back."""
