"""Hints on why a poll returned no record and what to do: each reason once per consumer.

They are for applications that wait for records which cannot arrive. An empty poll is otherwise normal, so no hint is
repeated.
"""

from __future__ import annotations

from collections.abc import Iterable

from shareq.client.calls import Calls
from shareq.client.metadata import Metadata
from shareq.client.patience import SILENT_MS, silence_of
from shareq.consumer.membership import Membership
from shareq.model.errors import Errors
from shareq.model.ids import illegal_topic_name

WAITS = "poll is empty: group "
"""The beginning of a hint about what may be normal: other hints are about mistakes and failures."""

SETTLE_MS = 1000
"""Time after the first poll without hints about assignment and start offset: the member may still be joining."""


class EmptyPollHints:
    """Reads the state of a consumer. `delivered`: set by the consumer when it has returned a record. `address`: that of
    a cluster over TCP, which may be silent; else empty."""

    def __init__(self, metadata: Metadata, membership: Membership, calls: Calls, address: str) -> None:
        self.delivered = False
        self._metadata = metadata
        self._membership = membership
        self._calls = calls
        self._address = address
        self._given: set[str] = set()
        self._first_poll_ms: int | None = None

    def poll_began(self, now_ms: int) -> None:
        """Store the time of the first poll."""
        if self._first_poll_ms is None:
            self._first_poll_ms = now_ms

    def next(self, topics: Iterable[str], now_ms: int) -> str | None:
        """The next hint that was not given before; None if there is none."""
        for reason, text in self._reasons(topics, now_ms):
            if reason not in self._given:
                self._given.add(reason)
                return text
        return None

    def _reasons(self, topics: Iterable[str], now_ms: int) -> list[tuple[str, str]]:
        if self._calls.refusal:
            return [("refusal", f"poll is empty: {self._calls.refusal}; the consumer tries again")]
        polled_ms = 0 if self._first_poll_ms is None else now_ms - self._first_poll_ms
        if self._address and not self._calls.reached:
            silence = ("silence", f"poll is empty: {silence_of(self._address)}; the consumer tries until it does")
            return [silence] if polled_ms >= SILENT_MS else []
        group_id, topics = self._membership.group_id, list(topics)
        illegal = [(f"topic {name}", f"poll is empty: {why}") for name in topics if (why := illegal_topic_name(name))]
        if illegal:
            return illegal
        missing = [t for t in topics if self._metadata.errors.get(t) is Errors.UNKNOWN_TOPIC_OR_PARTITION]
        if missing:
            return [
                (f"topic {name}", f"poll is empty: topic {name!r} does not exist; create it, or check its name")
                for name in missing
            ]
        if self.delivered or polled_ms < SETTLE_MS:
            return []
        if not self._membership.assigned:
            text = (
                f"{WAITS}{group_id!r} has not assigned a partition to this consumer yet; "
                "the assignment comes with a later heartbeat: poll again"
            )
            return [("assignment", text)]
        text = (
            f"{WAITS}{group_id!r} has no record to deliver now: there is none, or other members hold them. "
            "A new group starts at the end of the log, behind records produced before: to get those, set "
            "share.auto.offset.reset=earliest for the group before its first poll (Cluster.configure_group, "
            "Admin.incremental_alter_configs)"
        )
        return [("start offset", text)]
