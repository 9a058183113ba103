"""The producer: records into topics, with delivery reports and transactions."""

from shareq.producer.core import ProducerCore
from shareq.producer.offsets import ConsumerGroupMetadata
from shareq.producer.producer import Producer

__all__ = ["ConsumerGroupMetadata", "Producer", "ProducerCore"]
