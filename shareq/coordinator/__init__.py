"""The coordinators, on one runtime (`runtime`).

The group coordinator (`group_coordinator.py`) serves groups of all types: what they share is `group`; `share_group`,
`consumer_group`, `classic_group` and the committed `offsets` stand on it and do not know each other. `share_state` is
the share coordinator, `transactions` the transaction coordinator.
"""
