"""The consumers of a share group at work, each with a policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from shareq.broker import Cluster
from shareq.consumer import Message, Messages, ShareConsumer
from shareq.model.errors import ConfigException, IllegalStateException, KafkaException
from shareq.model.states import AcknowledgeType
from shareq.team.loop_poller import LoopPoller
from shareq.team.policy import Policy

MAX_POLL_RECORDS = 5
"""Few records a poll, so that all consumers get some."""


class Worker:
    """A consumer at work: it polls, works on the records one by one, and acknowledges each as its `policy` says.

    `policy` may be replaced at any time, and applies from the next record on. `cluster.freeze(worker.consumer)`,
    `cluster.unfreeze(...)` and `cluster.crash(...)` do to it what they do to any client.
    """

    def __init__(self, cluster: Cluster, name: str, consumer: ShareConsumer, policy: Policy) -> None:
        self.name = name
        self.consumer = consumer
        self.policy = policy
        self.errors: list[KafkaException] = []
        """The errors that polls have raised."""
        self._rng = cluster.client_rng()
        self._records: deque[Message] = deque()
        self._round = 0
        self._closed = False
        self._poller = LoopPoller(cluster, consumer, self._take, self.errors.append)
        self._poller.poll()

    @property
    def state(self) -> str:
        """closed, crashed, frozen, working (on records) or idle."""
        if self._closed:
            return "closed"
        if not self._poller.at_work:
            return "crashed"
        if self._poller.frozen:
            return "frozen"
        return "working" if self._records else "idle"

    @property
    def at_work(self) -> bool:
        """False if it is closed or has crashed."""
        return self.state not in ("closed", "crashed")

    def close(self) -> None:
        """Close the consumer: it sends its acknowledgements, releases its other records and leaves the group.

        IllegalStateException for a frozen or crashed one, which cannot do that.
        """
        if self.state in ("crashed", "frozen"):
            raise IllegalStateException(f"{self.name} is {self.state}: it cannot close its consumer")
        if not self._closed:
            self._closed = True
            self._poller.stop()
            self.consumer.close()

    def __repr__(self) -> str:
        return f"{self.name}: {self.state}, {self.policy!r}"

    # ---- work, in events of the loop ---------------------------------------------------------------------------------

    def _take(self, messages: Messages) -> None:
        self._records.extend(messages)
        self._round += 1
        self._renew_later(self._round)
        self._next()

    def _next(self) -> None:
        if self._records:
            self._poller.after(self.policy.time_ms(self._records[0]), self._finish)
        else:
            self._poller.poll()  # sends the acknowledgements

    def _finish(self) -> None:
        message = self._records.popleft()
        self._acknowledge(message, self.policy.verdict(message, self._rng))
        if self.policy.commit == "record":
            self.consumer.commit_async()
        self._next()

    def _renew_later(self, number: int) -> None:
        lock_ms = self.consumer.acquisition_lock_timeout_ms()
        if lock_ms is not None:
            self._poller.after(lock_ms // 2, lambda: self._renew(number))

    def _renew(self, number: int) -> None:
        """Renew the locks of the records of this round that are still in work."""
        if number != self._round or not self._records:
            return
        if self.policy.renew:
            for message in self._records:
                self._acknowledge(message, AcknowledgeType.RENEW)
            self.consumer.commit_async()
        self._renew_later(number)

    def _acknowledge(self, message: Message, verdict: AcknowledgeType) -> None:
        # The consumer does not hold a record whose renewal failed or has no response yet. In the second case the next
        # poll returns the record again.
        with suppress(IllegalStateException):
            self.consumer.acknowledge(message, verdict)


class Team:
    """The consumers of `group` at work on `topics`, by name: `team["A"]` is a Worker.

    They acknowledge explicitly. `conf`: configurations of all their consumers. A closed or crashed worker stays in the
    team until another one takes its name.
    """

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str], **conf: object) -> None:
        self._cluster = cluster
        self._topics = list(topics)
        self._conf = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "share.acquire.mode": "record_limit",
            "max.poll.records": MAX_POLL_RECORDS,
            **_dotted(conf),
        }
        self._workers: dict[str, Worker] = {}

    def add(self, name: str, policy: Policy | None = None, **conf: object) -> Worker:
        """Add a consumer; it joins the group when the clock moves. `conf`: its configurations, with underscores for
        dots, such as max_poll_records=10. ConfigException if one of this name is at work."""
        if not isinstance(name, str) or not name:
            raise ConfigException(f"name={name!r}: must be a text that is not empty")
        if name in self._workers and self._workers[name].at_work:
            raise ConfigException(f"name={name!r}: a consumer of this name is at work")
        consumer = ShareConsumer({**self._conf, "client.id": name, **_dotted(conf)})
        consumer.subscribe(self._topics)
        worker = self._workers[name] = Worker(self._cluster, name, consumer, policy or Policy())
        return worker

    def __getitem__(self, name: str) -> Worker:
        if name not in self._workers:
            raise KeyError(f"{name!r}: must be one of {', '.join(self._workers) or 'none: the team is empty'}")
        return self._workers[name]

    def __iter__(self) -> Iterator[Worker]:
        return iter(list(self._workers.values()))

    def __len__(self) -> int:
        return len(self._workers)

    def close(self) -> None:
        """Close all consumers that can; the others stay as they are."""
        for worker in self:
            if worker.state not in ("crashed", "frozen"):
                worker.close()

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "no consumers"


def _dotted(conf: dict[str, object]) -> dict[str, object]:
    return {key.replace("_", "."): value for key, value in conf.items()}
