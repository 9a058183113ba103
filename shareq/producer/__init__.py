"""The producer: records to topics, with delivery reports and transactions."""

from shareq.producer.core import ProducerCore
from shareq.producer.producer import Producer
from shareq.producer.transaction_offsets import ConsumerGroupMetadata

__all__ = ["ConsumerGroupMetadata", "Producer", "ProducerCore"]
