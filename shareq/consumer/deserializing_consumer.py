"""A share consumer that deserializes keys and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from shareq.client.message import Message
from shareq.consumer.messages import Messages
from shareq.consumer.share_consumer import ShareConsumer
from shareq.model.errors import KafkaError


class MessageField(StrEnum):
    KEY = "key"
    VALUE = "value"


class SerializationContext:
    """The context of a deserializer's bytes."""

    def __init__(self, topic: str | None, field: MessageField, headers: Any = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


Deserializer = Callable[[bytes | None, SerializationContext], Any]


class DeserializingShareConsumer(ShareConsumer):
    """Takes `key.deserializer` and `value.deserializer` in addition to the configuration of a `ShareConsumer`.

    A record whose deserializer raises keeps its bytes and has an `error()`. Unlike a broken record it has no
    acknowledge type: in explicit mode the application sets one, in implicit mode it is accepted.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        if not isinstance(conf, Mapping):
            raise TypeError(f"expected configuration dict, not {type(conf).__name__}")
        rest = dict(conf)
        self._key_deserializer: Deserializer | None = rest.pop("key.deserializer", None)
        self._value_deserializer: Deserializer | None = rest.pop("value.deserializer", None)
        super().__init__(rest)

    def poll(self, timeout: float = -1) -> Messages:
        """As `ShareConsumer.poll`, with keys and values deserialized."""
        messages = self._poll(timeout)
        for message in messages:
            if message.error() is None:
                self._deserialize(message)
        self._unreturned = False
        return messages

    def _deserialize(self, message: Message) -> None:
        """Deserialize key, then value: a key's deserializer may pass state to the value's. Both change, or neither."""
        context = SerializationContext(message.topic(), MessageField.KEY, message.headers())
        code = KafkaError._KEY_DESERIALIZATION
        try:
            key, value = message.key(), message.value()
            if self._key_deserializer is not None:
                key = self._key_deserializer(key, context)
            code, context.field = KafkaError._VALUE_DESERIALIZATION, MessageField.VALUE
            if self._value_deserializer is not None:
                value = self._value_deserializer(value, context)
        except Exception as error:  # the application's code may raise anything
            message.set_error(KafkaError(code, str(error)))
            return
        message.set_key(key)
        message.set_value(value)
