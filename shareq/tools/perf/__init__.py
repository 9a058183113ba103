"""`shareq perf`: Kafka's performance tools. They measure a producer, or the consumers of a share group."""
