"""How long a client has to wait that uses more than its quotas.

Rates are measured as Kafka measures them: in windows of `quota.window.size.seconds`, of which `quota.window.num` count.
A client may use its quota of all windows at once; beyond that it waits until its rate is at the quota again.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping

from shareq.model.actor import ClientContext
from shareq.model.client_quotas import (
    CONNECTION_CREATION_RATE,
    REQUEST_PERCENTAGE,
    Quota,
    Quotas,
    quota_of,
    quota_of_address,
)
from shareq.model.config_def import INT_MAX
from shareq.model.connection_configs import WINDOW_NUM, WINDOW_SECONDS
from shareq.wire.admission import Limit

_FEW_RATES = 1000
"""So many rates are kept without a look for those that have ended."""


class Rate:
    """What was used in the last windows."""

    def __init__(self, window_ms: int, windows: int) -> None:
        self._window_ms = window_ms
        self._windows = windows
        self._used: deque[tuple[int, float]] = deque()
        """The starts of windows, and what was used in each."""
        self._total = 0.0

    def record(self, amount: float, now_ms: int) -> None:
        start_ms = now_ms
        if self._used and now_ms - self._used[-1][0] < self._window_ms:
            start_ms, before = self._used.pop()
            self._used.append((start_ms, before + amount))
        else:
            self._used.append((start_ms, amount))
        self._total += amount

    def has_ended(self, now_ms: int) -> bool:
        """True if none of its windows counts any more."""
        while self._used and now_ms - self._used[0][0] >= self._window_ms * self._windows:
            self._total -= self._used.popleft()[1]
        return not self._used

    def excess_ms(self, limit_per_s: float, now_ms: int) -> float:
        """How long nothing may be used until the rate is `limit_per_s`; at most 0 if it is not above."""
        if self.has_ended(now_ms):
            return 0.0
        return self._total / limit_per_s * 1000 - self._span_ms(now_ms)

    def _span_ms(self, now_ms: int) -> int:
        """The time that the rate is measured over: all windows but one at least, even if the first has just begun."""
        elapsed_ms = now_ms - self._used[0][0]
        missing = self._windows - 1 - elapsed_ms // self._window_ms
        return elapsed_ms + max(missing, 0) * self._window_ms


class ClientQuotas:
    """The rates of the clients of one broker, of those that have a quota."""

    def __init__(self, quotas: Callable[[], Quotas], limit: Limit) -> None:
        self._quotas = quotas
        self._limit = limit
        self._rates: dict[tuple[str, str, str], Rate] = {}
        self._look_at = _FEW_RATES

    def quota(self, key: str, client: ClientContext) -> Quota | None:
        quotas = self._quotas()
        return quota_of(quotas, key, client.principal.partition(":")[2], client.client_id) if quotas else None

    def most_bytes(self, key: str, client: ClientContext) -> int:
        """What the client may use at once."""
        quota = self.quota(key, client)
        if quota is None:
            return INT_MAX
        windows: int = max(self._limit(WINDOW_NUM) - 1, 1) * self._limit(WINDOW_SECONDS)
        return min(int(quota.limit * windows), INT_MAX)

    def throttle_ms(self, client: ClientContext, used: Mapping[str, float], now_ms: int) -> int:
        """Count what a request has used, by quota; how long its client has to wait. A request that has taken too much
        time costs at most one window, as in Kafka."""
        longest = 0.0
        for key, amount in used.items():
            quota = self.quota(key, client)
            if quota is None:
                continue
            rate = self._rate((key, quota.user, quota.client_id), now_ms)
            rate.record(amount, now_ms)
            excess_ms = rate.excess_ms(quota.limit, now_ms)
            if key == REQUEST_PERCENTAGE:
                excess_ms = min(excess_ms, self._limit(WINDOW_SECONDS) * 1000)
            longest = max(longest, excess_ms)
        return min(round(longest), INT_MAX)

    def refusal_ms(self, address: str, now_ms: int) -> int:
        """Count a new connection of an address; above 0 it is not counted, and is to be closed after that time, at most
        a window."""
        quotas = self._quotas()
        limit = quota_of_address(quotas, address) if quotas else None
        if limit is None:
            return 0
        rate = self._rate((CONNECTION_CREATION_RATE, address, ""), now_ms)
        rate.record(1, now_ms)
        excess_ms = rate.excess_ms(limit, now_ms)
        if excess_ms <= 0:
            return 0
        rate.record(-1, now_ms)
        window_ms: int = self._limit(WINDOW_SECONDS) * 1000
        return min(math.ceil(excess_ms), window_ms)

    def _rate(self, whose: tuple[str, str, str], now_ms: int) -> Rate:
        found = self._rates.get(whose)
        if found is None:
            if len(self._rates) >= self._look_at:  # client ids are what clients say
                self._rates = {key: rate for key, rate in self._rates.items() if not rate.has_ended(now_ms)}
                self._look_at = max(_FEW_RATES, 2 * len(self._rates))
            found = self._rates[whose] = Rate(self._limit(WINDOW_SECONDS) * 1000, self._limit(WINDOW_NUM))
        return found
