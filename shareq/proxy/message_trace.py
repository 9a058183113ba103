"""Writes the requests and responses that pass as events, as brokers of shareq with `trace_messages=True` do."""

from __future__ import annotations

from itertools import count

from shareq.model.events import RequestSent, ResponseSent
from shareq.model.messages.base import Request, Response
from shareq.observer.timed_journal import TimedJournal
from shareq.trace.journal.message_json import message_json
from shareq.wire.errors import RequestHeader


class MessageTrace:
    """Numbers the exchanges from 0 on, whatever connection they are on."""

    def __init__(self, timed: TimedJournal) -> None:
        self._timed = timed
        self._numbers = count()

    def request(
        self, connection: int, broker_id: int, header: RequestHeader, request: Request, now_ms: int
    ) -> RequestSent:
        """Write a request; the result is the argument of `response`."""
        api, version, client = type(request).__name__, header.api_version, header.client_id or ""
        source, target = client or f"connection-{connection}", f"broker-{broker_id}"
        sent = RequestSent(source, target, api, next(self._numbers), client, version, message_json(request))
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            self._timed.write(sent)
        return sent

    def response(self, sent: RequestSent, response: Response, now_ms: int) -> None:
        api, error = type(response).__name__, int(getattr(response, "error_code", 0))
        with self._timed.lock:
            self._timed.advance_to(now_ms)
            self._timed.write(ResponseSent(sent.target, sent.source, api, error, sent.exchange, message_json(response)))
