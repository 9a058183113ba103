"""The share coordinator: the durable state of share-partitions, stored in `__share_group_state`."""

from shareq.coordinator.share_state.coordinator import ShareCoordinator
from shareq.coordinator.share_state.keeper import ShareStateKeeper
from shareq.coordinator.share_state.lookup import find_share_coordinator, parse_key
from shareq.coordinator.share_state.records import (
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
)

__all__ = [
    "ShareCoordinator",
    "ShareStateKeeper",
    "StateRecord",
    "StateSnapshot",
    "StateTombstone",
    "StateUpdate",
    "decode_state_record",
    "find_share_coordinator",
    "parse_key",
]
