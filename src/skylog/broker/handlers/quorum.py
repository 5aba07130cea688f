"""The metadata quorum's own APIs, on the controllers' listener."""

from __future__ import annotations

from skylog.broker.net.context import RequestContext
from skylog.wire.schema import Message


async def serve(context: RequestContext, request: Message) -> Message:
    """Handle requests of other replicas, or of an operator who changes the voters."""
    return await context.services.quorum.serve(request, context.version)
