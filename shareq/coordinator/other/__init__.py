"""What runs beside share groups, so that any Kafka client can be served: classic and consumer groups, the offsets that
they commit, and transactions."""
