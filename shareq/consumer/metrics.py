"""The metrics of a consumer, under the names of Kafka's share consumer metrics."""

from __future__ import annotations

WINDOW_MS = 30_000
"""Rates, averages and maxima cover this window and the one before, as in Kafka's sampled statistics."""

_NONE = float("nan")


class Sampled:
    """A stream of values: the total since the start; rate, average and maximum over the last two windows."""

    __slots__ = ("_before", "_now", "_started_ms", "count", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0
        self._started_ms: int | None = None
        self._now = [0, 0.0, _NONE]  # count, sum, max
        self._before = [0, 0.0, _NONE]

    def record(self, value: float, now_ms: int) -> None:
        self._roll(now_ms)
        if self._started_ms is None:
            self._started_ms = now_ms
        self.total += value
        self.count += 1
        window = self._now
        window[0] += 1
        window[1] += value
        window[2] = value if window[2] != window[2] else max(window[2], value)

    def _roll(self, now_ms: int) -> None:
        if self._started_ms is None:
            return
        passed = (now_ms - self._started_ms) // WINDOW_MS
        if passed > 0:
            self._before = self._now if passed == 1 else [0, 0.0, _NONE]
            self._now = [0, 0.0, _NONE]
            self._started_ms += passed * WINDOW_MS

    def rate(self, now_ms: int) -> float:
        """The sum of values per second; NaN before the first value."""
        self._roll(now_ms)
        if self._started_ms is None:
            return _NONE
        span_ms = now_ms - self._started_ms + (WINDOW_MS if self.count > self._now[0] else 0)
        return (self._now[1] + self._before[1]) * 1000 / max(span_ms, 1000)

    def average(self, now_ms: int) -> float:
        self._roll(now_ms)
        count = self._now[0] + self._before[0]
        return (self._now[1] + self._before[1]) / count if count else _NONE

    def maximum(self, now_ms: int) -> float:
        self._roll(now_ms)
        return max((window[2] for window in (self._now, self._before) if window[0]), default=_NONE)


class HeartbeatMetrics:
    """Metrics of the membership: heartbeats, and changes of the assignment."""

    def __init__(self) -> None:
        self._sent_at_ms: int | None = None
        self._heartbeats = Sampled()
        self._response_times = Sampled()
        self._rebalances = Sampled()

    def sent(self, now_ms: int) -> None:
        self._sent_at_ms = now_ms
        self._heartbeats.record(1, now_ms)

    def answered(self, took_ms: int, now_ms: int) -> None:
        self._response_times.record(took_ms, now_ms)

    def reconciled(self, now_ms: int) -> None:
        self._rebalances.record(1, now_ms)

    def values(self, now_ms: int) -> dict[str, float]:
        return {
            "heartbeat-rate": self._heartbeats.rate(now_ms),
            "heartbeat-total": self._heartbeats.total,
            "heartbeat-response-time-max": self._response_times.maximum(now_ms),
            "last-heartbeat-seconds-ago": _seconds_since(self._sent_at_ms, now_ms),
            "rebalance-total": self._rebalances.total,
            "rebalance-rate-per-hour": self._rebalances.rate(now_ms) * 3600,
        }


class FetchMetrics:
    """Metrics of the share sessions: fetches, their records and bytes, acknowledgements."""

    def __init__(self) -> None:
        self.fetches = Sampled()
        self.fetch_latency_ms = Sampled()
        self.fetched_bytes = Sampled()
        self.fetched_records = Sampled()
        self.acknowledgements_sent = Sampled()
        self.acknowledgement_errors = Sampled()

    def values(self, now_ms: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, rates in (
            ("fetch", self.fetches),
            ("bytes-consumed", self.fetched_bytes),
            ("records-consumed", self.fetched_records),
            ("acknowledgements-send", self.acknowledgements_sent),
            ("acknowledgements-error", self.acknowledgement_errors),
        ):
            found |= {f"{name}-rate": rates.rate(now_ms), f"{name}-total": rates.total}
        for name, sizes in (
            ("fetch-size", self.fetched_bytes),
            ("records-per-request", self.fetched_records),
            ("fetch-latency", self.fetch_latency_ms),
        ):
            found |= {f"{name}-avg": sizes.average(now_ms), f"{name}-max": sizes.maximum(now_ms)}
        throttled = 0.0 if self.fetches.count else _NONE  # throttle times are not read
        return {**found, "fetch-throttle-time-avg": throttled, "fetch-throttle-time-max": throttled}


class PollMetrics:
    """Metrics of the application's polls: their frequency, and the fraction of time spent waiting in poll."""

    def __init__(self) -> None:
        self._began_at_ms: int | None = None
        self._ended_at_ms: int | None = None
        self._between_polls_ms = Sampled()
        self._idle_ratio = Sampled()

    def began(self, now_ms: int) -> None:
        if self._began_at_ms is not None and self._ended_at_ms is not None:
            between_ms = now_ms - self._began_at_ms
            self._between_polls_ms.record(between_ms, now_ms)
            idle_ms = self._ended_at_ms - self._began_at_ms
            self._idle_ratio.record(idle_ms / between_ms if between_ms else 0.0, now_ms)
        self._began_at_ms = now_ms

    def ended(self, now_ms: int) -> None:
        self._ended_at_ms = now_ms

    def values(self, now_ms: int) -> dict[str, float]:
        return {
            "last-poll-seconds-ago": _seconds_since(self._began_at_ms, now_ms),
            "time-between-poll-avg": self._between_polls_ms.average(now_ms),
            "time-between-poll-max": self._between_polls_ms.maximum(now_ms),
            "poll-idle-ratio-avg": self._idle_ratio.average(now_ms),
        }


def _seconds_since(then_ms: int | None, now_ms: int) -> float:
    return -1.0 if then_ms is None else (now_ms - then_ms) / 1000
