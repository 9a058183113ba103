"""A transparent proxy in front of Apache Kafka, which changes the addresses of brokers and journals share groups."""

from shareq.proxy.tap import Tap, tap

__all__ = ["Tap", "tap"]
