"""The coordinators, on one runtime: share groups (`share_group`), share-partition state (`share_state`), all other
groups, offsets and transactions (`other`); `groups` is the group coordinator that serves groups of all types."""
