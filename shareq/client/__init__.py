"""What consumer, producer and admin share: calls under way, metadata, coordinator lookup, configuration, messages."""
