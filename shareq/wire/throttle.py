"""The wait of one connection whose client has used more than its quotas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shareq.model.actor import ClientContext
from shareq.model.client_quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.topics import CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse
from shareq.wire.quotas import ClientQuotas
from shareq.wire.served_cluster import Loop, Timer

_FETCHES = (FetchRequest, ShareFetchRequest)
_CHANGES = (CreateTopicsResponse, DeleteTopicsResponse, CreatePartitionsResponse)


class Throttle:
    """`ended` is called in any thread when the wait is over."""

    def __init__(self, quotas: ClientQuotas, loop: Loop, ended: Callable[[], object]) -> None:
        self.spent_s = 0.0
        """The time that the request under way has taken so far."""
        self._quotas = quotas
        self._loop = loop
        self._ended = ended
        self._timer: Timer | None = None

    @property
    def waits(self) -> bool:
        """True if no request of the connection is processed now."""
        return self._timer is not None

    def limited(self, request: Request, client: ClientContext) -> Request:
        """The request; a fetch gets at most what its client may use at once."""
        if isinstance(request, _FETCHES):
            most_bytes = self._quotas.most_bytes(CONSUMER_BYTE_RATE, client)
            if most_bytes < request.max_bytes:
                return replace(request, max_bytes=most_bytes)
        return request

    def count(
        self,
        request: Request | None,
        response: Response,
        client: ClientContext,
        request_size: int,
        response_size: int,
    ) -> int:
        """Count what a request has used; above a quota the wait begins, of the returned time in ms. Requests of a login
        are free. The controller has counted changes of topics: their wait is in the response."""
        if request is None or isinstance(request, SaslHandshakeRequest | SaslAuthenticateRequest):
            return 0
        used = {REQUEST_PERCENTAGE: 100 * self.spent_s}
        if isinstance(request, ProduceRequest):
            used[PRODUCER_BYTE_RATE] = request_size
        elif isinstance(request, _FETCHES):
            used[CONSUMER_BYTE_RATE] = response_size
        now_ms = self._loop.time_ms()
        throttle_ms = self._quotas.throttle_ms(client, used, now_ms)
        if isinstance(response, _CHANGES):
            throttle_ms = max(throttle_ms, response.throttle_time_ms)
        if throttle_ms > 0:
            self._loop.run(lambda: self._wait_until(now_ms + throttle_ms))
        return throttle_ms

    def cancel(self) -> None:
        """The connection is lost."""
        if (timer := self._timer) is not None:
            timer.cancel()

    def _wait_until(self, due_ms: int) -> None:
        self._timer = self._loop.at(due_ms, self._over)

    def _over(self) -> None:
        self._timer = None
        self._ended()
