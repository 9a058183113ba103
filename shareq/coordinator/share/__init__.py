"""The share coordinator: durable share-partition state on `__share_group_state`."""

from shareq.coordinator.share.coordinator import ShareCoordinator
from shareq.coordinator.share.lookup import find_share_coordinator, parse_key
from shareq.coordinator.share.merge import combine
from shareq.coordinator.share.records import (
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
)

__all__ = [
    "ShareCoordinator",
    "StateRecord",
    "StateSnapshot",
    "StateTombstone",
    "StateUpdate",
    "combine",
    "decode_state_record",
    "find_share_coordinator",
    "parse_key",
]
