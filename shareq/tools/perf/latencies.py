"""Throughput and latencies of a producer, and the lines in which they are printed.

Source: the lines of Kafka 4.4's kafka-producer-perf-test, and its percentiles: of every record, or of 500,000 that are
evenly spaced.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_SAMPLES = 500_000
MIB = 1024 * 1024
PERCENTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}


class Counts:
    """Records, bytes and latencies since a moment; times in milliseconds."""

    __slots__ = ("latency_sum", "max_latency", "records", "size", "start_ms")

    def __init__(self, start_ms: float) -> None:
        self.start_ms = start_ms
        self.records = 0
        self.size = 0
        self.latency_sum = 0
        self.max_latency = 0

    def add(self, latency_ms: int, size: int) -> None:
        self.records += 1
        self.size += size
        self.latency_sum += latency_ms
        self.max_latency = max(self.max_latency, latency_ms)

    def rates(self, now_ms: float) -> tuple[float, float]:
        """Records and MiB a second."""
        elapsed_ms = max(now_ms - self.start_ms, 1)
        return 1000 * self.records / elapsed_ms, 1000 * self.size / elapsed_ms / MIB

    @property
    def average(self) -> float:
        return self.latency_sum / self.records if self.records else 0.0


class Latencies:
    """The statistics of `num_records` records, or of fewer if some fail. `show` prints the lines of progress, one for
    each interval; None: there is no progress. `steady`: the records after the warm-up."""

    def __init__(
        self,
        num_records: int,
        start_ms: float,
        interval_ms: int,
        show: Callable[[str], object] | None,
        *,
        steady: bool = False,
    ) -> None:
        self.show = show
        self._total, self._window = Counts(start_ms), Counts(start_ms)
        self._interval_ms = interval_ms
        self._steady = steady
        self._sampling = max(1, num_records // min(num_records, MOST_SAMPLES))
        self._samples: list[int] = []

    @property
    def records(self) -> int:
        return self._total.records

    def add(self, latency_ms: int, size: int, now_ms: float) -> None:
        """Count a record that was written."""
        if self._total.records % self._sampling == 0:
            self._samples.append(latency_ms)
        self._total.add(latency_ms, size)
        self._window.add(latency_ms, size)
        if now_ms - self._window.start_ms >= self._interval_ms:
            if self.show is not None:
                if self._steady and self._window.records == self._total.records:
                    self.show("In steady state.")
                self.show(self._progress(now_ms))
            self._window = Counts(now_ms)

    def _progress(self, now_ms: float) -> str:
        window = self._window
        records, mib = window.rates(now_ms)
        return (
            f"{window.records} records sent, {records:.1f} records/sec ({mib:.2f} MB/sec), "
            f"{window.average:.1f} ms avg latency, {window.max_latency:.1f} ms max latency."
        )

    def percentiles(self) -> dict[str, int]:
        """In whole milliseconds; 0 without a record."""
        ordered = sorted(self._samples)
        return {name: ordered[int(part * len(ordered))] if ordered else 0 for name, part in PERCENTILES.items()}

    def summary(self, now_ms: float) -> str:
        """The last line."""
        total, found = self._total, self.percentiles()
        records, mib = total.rates(now_ms)
        return (
            f"{total.records}{' steady state' if self._steady else ''} records sent, {records:f} records/sec "
            f"({mib:.2f} MB/sec), {total.average:.2f} ms avg latency, {total.max_latency:.2f} ms max latency, "
            f"{found['p50_ms']} ms 50th, {found['p95_ms']} ms 95th, {found['p99_ms']} ms 99th, "
            f"{found['p999_ms']} ms 99.9th."
        )

    def row(self, now_ms: float) -> dict[str, object]:
        """The summary as an object."""
        total = self._total
        records, mib = total.rates(now_ms)
        return {
            "steady_state": self._steady,
            "records": total.records,
            "records_per_sec": records,
            "mb_per_sec": mib,
            "avg_latency_ms": total.average,
            "max_latency_ms": total.max_latency,
            **self.percentiles(),
        }
