"""The coordinator features that Kafka clients need besides share groups: classic groups, consumer groups, committed
offsets and transactions."""
