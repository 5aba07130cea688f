"""Envelope: a client's request, passed on by a broker to the active controller."""

from __future__ import annotations

from skylog.broker.net.context import RequestContext
from skylog.broker.net.forwarding import host_of, principal_of
from skylog.wire.messages.envelope_request import EnvelopeRequest
from skylog.wire.messages.envelope_response import EnvelopeResponse


async def envelope(context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    """Handle Envelope: answer the request in it as if its client had sent it here."""
    client = principal_of(request), host_of(request)
    dispatcher = context.connection.listener.dispatcher
    return await dispatcher.answer_envelope(context, request.request_data, client)
