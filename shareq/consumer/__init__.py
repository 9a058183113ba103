"""The share consumer: poll, acknowledge, commit, callbacks."""

from shareq.client.message import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)
from shareq.client.topic_partition import TopicPartition
from shareq.consumer.core import ShareConsumerCore
from shareq.consumer.deserializing_consumer import DeserializingShareConsumer, MessageField, SerializationContext
from shareq.consumer.messages import Messages
from shareq.consumer.share_consumer import ShareConsumer
from shareq.model.states import AcknowledgeType

__all__ = [
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "AcknowledgeType",
    "DeserializingShareConsumer",
    "Message",
    "MessageField",
    "Messages",
    "SerializationContext",
    "ShareConsumer",
    "ShareConsumerCore",
    "TopicPartition",
]
