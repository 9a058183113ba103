"""The groups of one partition of `__consumer_offsets`, as a fold of its log."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from shareq.coordinator.codec import Reader
from shareq.coordinator.groups import group
from shareq.coordinator.groups.group import G, Group
from shareq.coordinator.other.classic.records import GROUP_METADATA
from shareq.coordinator.other.classic.replay import replay as replay_classic
from shareq.coordinator.other.consumer.records import RecordType as ConsumerRecordType
from shareq.coordinator.other.consumer.state import replay as replay_consumer
from shareq.coordinator.other.offsets.records import OFFSET_COMMIT_TYPES
from shareq.coordinator.other.offsets.state import Offsets
from shareq.coordinator.shard import UnreadableRecordError
from shareq.coordinator.share_group import state
from shareq.coordinator.share_group.records import RecordType

Replay = Callable[[dict[str, Group], bytes, bytes | None, int], None]
"""Replays one record of its types: (groups, key, value, now_ms)."""

_REPLAY: dict[int, Replay] = {
    GROUP_METADATA: replay_classic,
    **dict.fromkeys(ConsumerRecordType, replay_consumer),
    **dict.fromkeys(RecordType, state.replay),
}


class Inquiry:
    """A pending request about a producer's transaction. `ended`: the transaction has ended here since, so the answer is
    outdated."""

    __slots__ = ("__weakref__", "ended")

    def __init__(self) -> None:
        self.ended = False


class GroupShard:
    """Groups of all types by id, and the offsets committed for them.

    `transactions`: epochs by producer id, of the transactions that have written here since the shard was loaded.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.transactions: dict[int, int] = {}
        self._inquiries: WeakValueDictionary[int, Inquiry] = WeakValueDictionary()

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one committed record; unknown types (written by another version) are skipped.

        Raises UnreadableRecordError if a record is invalid, or an id would have two types.
        """
        kind = Reader(key).int16()
        if kind in OFFSET_COMMIT_TYPES:
            self.offsets.replay(self.groups, offset, key, value)
            return
        replay = _REPLAY.get(kind)
        if replay is not None:
            replay(self.groups, key, value, now_ms)

    def replay_transactional(self, offset: int, key: bytes, value: bytes | None, producer_id: int, now_ms: int) -> None:
        """Replay an offset that a producer has committed in its open transaction."""
        del now_ms
        if Reader(key).int16() not in OFFSET_COMMIT_TYPES:
            raise UnreadableRecordError(f"offset {offset}: only offsets belong to transactions")
        self.offsets.replay(self.groups, offset, key, value, producer_id)

    def replay_marker(self, producer_id: int, committed: bool, now_ms: int) -> None:
        """Commit or discard the offsets of a producer's transaction."""
        del now_ms
        self.offsets.replay_marker(producer_id, committed)
        self.transactions.pop(producer_id, None)
        inquiry = self._inquiries.pop(producer_id, None)
        if inquiry:
            inquiry.ended = True

    def inquire(self, producer_id: int) -> Inquiry:
        """Start an inquiry. The shard holds it weakly: it lasts as long as the caller keeps it."""
        return self._inquiries.setdefault(producer_id, Inquiry())

    def find(self, kind: type[G], group_id: str) -> G | None:
        """The group, if it exists and is of this type; else None."""
        return group.find(self.groups, kind, group_id)
