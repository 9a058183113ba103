"""The coordinators, on one runtime: groups (`groups`, `share_group`), share-partition state (`share_state`), and what
other Kafka clients need (`other`)."""
