"""The coordinator of a group or of transactions: looked up once, and again after it turns out to be wrong."""

from __future__ import annotations

from shareq.client.calls import Backoff, Calls
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse


class CoordinatorLookup:
    """`node` is the coordinator, None while unknown. `fatal` holds an error that no retry will mend."""

    def __init__(
        self, calls: Calls, backoff: Backoff, key: str, key_type: CoordinatorType = CoordinatorType.GROUP
    ) -> None:
        self.node: int | None = None
        self.fatal: tuple[Errors, str | None] | None = None
        self._calls = calls
        self._backoff = backoff
        self._key = key
        self._key_type = key_type
        self._wanted = False
        self._under_way = False
        self._attempts = 0
        self._not_before_ms = 0

    def want(self) -> None:
        """Find the coordinator, unless it is known."""
        self._wanted = self.node is None

    def forget(self) -> None:
        self.node = None

    @property
    def looking(self) -> bool:
        """True while the lookup is under way: until then no coordinator is known."""
        return self._wanted

    @property
    def wake_at_ms(self) -> int | None:
        return self._not_before_ms if self._wanted and not self._under_way else None

    def pump(self, now_ms: int) -> None:
        if not self._wanted or self._under_way or now_ms < self._not_before_ms:
            return
        self._under_way = True
        request = FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=(self._key,))
        self._calls.send(ANY_NODE, request, self._answered)

    def _answered(self, response: Response | None, error: Errors, now_ms: int) -> None:
        self._under_way = False
        message = None
        if response is not None:
            assert isinstance(response, FindCoordinatorResponse)
            found = response.coordinators[0]
            error, message = found.error_code, found.error_message
            if not error:
                self.node = found.node_id
                self._wanted = False
                self._attempts = 0
                return
        if not error.retriable:
            self.fatal = (error, message or self._calls.reason or None)
            self._wanted = False
            return
        self._attempts += 1
        self._not_before_ms = now_ms + self._backoff.delay_ms(self._attempts)
