"""The topics to which letters are redriven, and what they take."""

from __future__ import annotations

from typing import NamedTuple

from shareq.admin.redrive.calls import AdminCalls
from shareq.admin.redrive.contents import Content, Skipped
from shareq.log.records import encode_batch
from shareq.model.errors import Errors, KafkaException

_LIMIT, _POLICY = "max.message.bytes", "cleanup.policy"
_ROOM = 256
"""More than a batch and its record need beside key, value and headers; that of each header is counted."""


class Target(NamedTuple):
    """`max_bytes`: the size of its largest batch. `needs_keys`: it is compacted, and refuses records without a key."""

    topic: str
    partitions: int
    max_bytes: int
    needs_keys: bool

    def refusal(self, content: Content) -> Skipped | None:
        """Why the topic would refuse the record; None if it takes it."""
        if self.needs_keys and content.key is None:
            return Skipped(f"topic {self.topic} is compacted, and the record has no key")
        headers = sum(len(name) * 4 + len(value or b"") + 10 for name, value in content.headers)
        if _ROOM + headers + len(content.key or b"") + len(content.value or b"") <= self.max_bytes:
            return None
        if len(encode_batch([(*content, 0)])) <= self.max_bytes:
            return None
        return Skipped(f"the record is larger than {_LIMIT} of topic {self.topic}, {self.max_bytes}")


class Targets:
    """The topics of the cluster, each looked up once."""

    def __init__(self, admin: AdminCalls, timeout: float) -> None:
        self._admin = admin
        self._timeout = timeout
        self._found: dict[str, Target | None] = {}

    def find(self, topic: str) -> Target | None:
        """The topic; None if it does not exist."""
        if topic not in self._found:
            self._found[topic] = self._look_up(topic)
        return self._found[topic]

    def _look_up(self, topic: str) -> Target | None:
        described = self._admin.describe_topics([topic], timeout=self._timeout)[topic]
        if described.error is not None:
            if described.error.code() == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise KafkaException(described.error)
        configs = self._admin.describe_configs("topic", topic, [_LIMIT, _POLICY], timeout=self._timeout)
        policy = configs[_POLICY].value or ""
        return Target(topic, len(described.partitions), int(configs[_LIMIT].value or 0), "compact" in policy)
