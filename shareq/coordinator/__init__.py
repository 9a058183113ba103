"""The coordinators, on one runtime: of groups (`groups`, and above all `share_group`), of share-partition state
(`share_state`), and what is there so that any Kafka client can be served (`other`)."""
