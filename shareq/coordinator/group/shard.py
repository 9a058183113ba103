"""The groups of one partition of `__consumer_offsets`: replay, and what is to be done when a log has been loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shareq.coordinator.group import state
from shareq.coordinator.group.records import ForeignRecord, GroupType, decode
from shareq.coordinator.group.state import ShareGroup
from shareq.coordinator.shard import Operation, UnreadableRecordError
from shareq.model.errors import Errors


class GroupShard:
    """Share groups by id, and beside them the ids that groups of other types have taken."""

    def __init__(self, on_load: Callable[[GroupShard, int], Iterable[Operation[GroupShard, Any]]]) -> None:
        self.groups: dict[str, ShareGroup] = {}
        self.foreign: dict[str, GroupType] = {}
        self._on_load = on_load

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Take in one committed record. UnreadableRecordError also where an id would have two types."""
        record = decode(key, value)
        if record is None:
            return
        if isinstance(record, ForeignRecord):
            self._replay_foreign(record, offset)
            return
        if record.value is not None and record.group_id in self.foreign:
            raise UnreadableRecordError(f"offset {offset}: {record.group_id} is not a share group")
        state.replay(self.groups, record, now_ms)

    def _replay_foreign(self, record: ForeignRecord, offset: int) -> None:
        if record.ends_group:
            self.foreign.pop(record.group_id, None)
        elif record.group_id in self.groups:
            raise UnreadableRecordError(f"offset {offset}: {record.group_id} is a share group")
        elif record.group_type is GroupType.CLASSIC:  # consumer groups have records of classic types, too: offsets
            self.foreign.setdefault(record.group_id, record.group_type)
        else:
            self.foreign[record.group_id] = record.group_type

    def loaded(self, now_ms: int) -> Iterator[Operation[GroupShard, Any]]:
        """All is replayed; what has to be done now is the coordinator's to say."""
        return iter(self._on_load(self, now_ms))

    def find(self, group_id: str) -> ShareGroup | Errors:
        """The share group, or GROUP_ID_NOT_FOUND: where it is absent, and where another type has the id."""
        return self.groups.get(group_id, Errors.GROUP_ID_NOT_FOUND)
