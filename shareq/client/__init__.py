"""What consumer, producer and admin share: calls under way, metadata, coordinator lookup, configuration, messages."""

from shareq.client.topic_partition import TopicPartition

__all__ = ["TopicPartition"]
