"""Apache Kafka as the backend: logs, topics and brokers are Kafka's; share groups are served by this project's actors.

BEHAVIOUR.md has the rules.
"""
