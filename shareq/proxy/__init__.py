"""A transparent proxy in front of Apache Kafka: it changes the addresses of brokers in responses, and nothing else."""
