"""The configuration keys of security."""

from __future__ import annotations

from typing import Any

from shareq.model.errors import ConfigException

_KEYS = """
security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password sasl.oauthbearer.config
sasl.oauthbearer.token.endpoint.url oauth_cb ssl.ca.location ssl.ca.pem ssl.certificate.location
ssl.certificate.pem ssl.key.location ssl.key.pem ssl.key.password ssl.cipher.suites
ssl.endpoint.identification.algorithm enable.ssl.certificate.verification
"""
SECURITY_KEYS = frozenset(_KEYS.split())
"""confluent-kafka's keys; that of the token's URL takes a file. In this process they have no effect."""


def truth(key: str, value: Any) -> bool:
    """A bool, or one of librdkafka's words for it. ConfigException for any other value."""
    word = str(value).strip().lower()
    if word in ("true", "t", "1"):
        return True
    if word in ("false", "f", "0"):
        return False
    raise ConfigException(f"{key}={value!r}: must be true or false")
