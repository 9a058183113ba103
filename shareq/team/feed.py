"""A producer at work: records on request, or at a rate."""

from __future__ import annotations

from shareq.broker import Cluster
from shareq.broker.loop import Timer
from shareq.model.errors import ConfigException
from shareq.model.numbers import plain
from shareq.producer import Producer

MAX_RATE, MAX_RECORDS, MAX_BATCH = 10_000, 100_000, 10_000


class Feed:
    """Produces records to `topic`, in record batches of `batch` records, to its partitions in turn.

    The values are "record 0", "record 1", ...; with `poison_every=10` each tenth is "poison 9", "poison 19", ..., with
    `slow_every=10` "slow 9", ... (a record that is both is poison). 0: none. All may be changed at any time;
    ConfigException for an invalid value.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        rate: float = 0,
        batch: int = 5,
        poison_every: int = 0,
        slow_every: int = 0,
    ) -> None:
        self._cluster = cluster
        self.topic = topic
        self.producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "client.id": f"feed-{topic}"})
        self.produced = 0
        """The number of records so far, and the number in the value of the next one."""
        self._batches = 0
        self._timer: Timer | None = None
        self._rate: float = 0
        self._whole = {
            "batch": _whole("batch", batch, 1, MAX_BATCH),
            "poison_every": _whole("poison_every", poison_every, 0, MAX_RECORDS),
            "slow_every": _whole("slow_every", slow_every, 0, MAX_RECORDS),
        }
        self.rate = rate

    # ---- settings ----------------------------------------------------------------------------------------------------

    @property
    def batch(self) -> int:
        """Records a record batch."""
        return self._whole["batch"]

    @batch.setter
    def batch(self, records: int) -> None:
        self._whole["batch"] = _whole("batch", records, 1, MAX_BATCH)

    @property
    def poison_every(self) -> int:
        """Each n-th record is poison; 0: none."""
        return self._whole["poison_every"]

    @poison_every.setter
    def poison_every(self, records: int) -> None:
        self._whole["poison_every"] = _whole("poison_every", records, 0, MAX_RECORDS)

    @property
    def slow_every(self) -> int:
        """Each n-th record is slow; 0: none."""
        return self._whole["slow_every"]

    @slow_every.setter
    def slow_every(self, records: int) -> None:
        self._whole["slow_every"] = _whole("slow_every", records, 0, MAX_RECORDS)

    @property
    def rate(self) -> float:
        """Records a second of the cluster's time; 0: only on request."""
        return self._rate

    @rate.setter
    def rate(self, per_second: float) -> None:
        per_second = plain(per_second)
        number = isinstance(per_second, (int, float)) and not isinstance(per_second, bool)
        if not (number and 0 <= per_second <= MAX_RATE):
            raise ConfigException(f"rate={per_second!r}: must be a number in 0..{MAX_RATE}")

        def change() -> None:
            self._rate = per_second
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if per_second:
                self._schedule(self._cluster.now_ms)

        self._cluster.loop.enter(change)

    # ---- records -----------------------------------------------------------------------------------------------------

    def send(self, records: int = 1) -> None:
        """Produce this many records now. They are in the log on return, unless the leader is down or far away."""
        _whole("records", records, 1, MAX_RECORDS)
        loop = self._cluster.loop
        loop.enter(lambda: loop.as_event(lambda: self._send(records)))

    def close(self) -> None:
        """Stop, and close the producer."""
        self.rate = 0
        self.producer.close()

    def _send(self, records: int) -> None:
        partitions = len(self._cluster.image.topics[self.topic].partitions)
        while records > 0:
            for _ in range(min(records, self.batch)):
                self.producer.produce(self.topic, self._value(), partition=self._batches % partitions)
            records -= self.batch
            self._batches += 1
            self.producer.flush()  # a batch of its own; inside an event it does not wait

    def _value(self) -> str:
        number, self.produced = self.produced, self.produced + 1
        for word, every in (("poison", self.poison_every), ("slow", self.slow_every)):
            if every and self.produced % every == 0:
                return f"{word} {number}"
        return f"record {number}"

    def _schedule(self, from_ms: float) -> None:
        """Send the next batch at the time at which its last record is due; a late batch delays those after it."""
        due_ms = max(from_ms + self.batch * 1000 / self._rate, self._cluster.now_ms)

        def produce() -> None:
            self._cluster.loop.as_event(lambda: self._send(self.batch))
            self._schedule(due_ms)

        self._timer = self._cluster.loop.at(int(due_ms), produce)


def _whole(name: str, value: object, low: int, high: int) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigException(f"{name}={value!r}: must be a whole number in {low}..{high}")
    return value
