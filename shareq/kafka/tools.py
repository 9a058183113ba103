"""Kafka's command-line tools, unmodified: `run("kafka-topics", "--bootstrap-server", address, "--list").stdout`."""

from __future__ import annotations

import subprocess

from shareq.jvm import find_java
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import tools_jars
from shareq.model.errors import ConfigException

_PACKAGE = "org.apache.kafka.tools"

# The scripts in Kafka's bin folder, and their main classes.
TOOLS = {
    "kafka-acls": f"{_PACKAGE}.AclCommand",
    "kafka-broker-api-versions": f"{_PACKAGE}.BrokerApiVersionsCommand",
    "kafka-client-metrics": f"{_PACKAGE}.ClientMetricsCommand",
    "kafka-cluster": f"{_PACKAGE}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{_PACKAGE}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_PACKAGE}.ConsoleProducer",
    "kafka-console-share-consumer": f"{_PACKAGE}.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": f"{_PACKAGE}.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{_PACKAGE}.ConsumerPerformance",
    "kafka-delete-records": f"{_PACKAGE}.DeleteRecordsCommand",
    "kafka-features": f"{_PACKAGE}.FeatureCommand",
    "kafka-get-offsets": f"{_PACKAGE}.GetOffsetShell",
    "kafka-groups": f"{_PACKAGE}.GroupsCommand",
    "kafka-leader-election": f"{_PACKAGE}.LeaderElectionCommand",
    "kafka-log-dirs": f"{_PACKAGE}.LogDirsCommand",
    "kafka-metadata-quorum": f"{_PACKAGE}.MetadataQuorumCommand",
    "kafka-producer-perf-test": f"{_PACKAGE}.ProducerPerformance",
    "kafka-reassign-partitions": f"{_PACKAGE}.reassign.ReassignPartitionsCommand",
    "kafka-share-consumer-perf-test": f"{_PACKAGE}.ShareConsumerPerformance",
    "kafka-share-groups": f"{_PACKAGE}.consumer.group.ShareGroupCommand",
    "kafka-topics": f"{_PACKAGE}.TopicCommand",
    "kafka-transactions": f"{_PACKAGE}.TransactionsCommand",
    "kafka-verifiable-consumer": f"{_PACKAGE}.VerifiableConsumer",
    "kafka-verifiable-producer": f"{_PACKAGE}.VerifiableProducer",
    "kafka-verifiable-share-consumer": f"{_PACKAGE}.VerifiableShareConsumer",
}


def command(name: str, *args: str) -> list[str]:
    """The command line of a tool, for callers that start the process themselves. Raises as `tools_jars` does."""
    main_class = TOOLS.get(name.removesuffix(".sh"))
    if main_class is None:
        raise ConfigException(f"tool={name!r}: must be one of {', '.join(TOOLS)}")
    return KafkaCommand(find_java(), tools_jars()).tool(main_class, args)


def run(name: str, *args: str, stdin: str = "", timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run a tool: `returncode`, `stdout`, `stderr`. subprocess.TimeoutExpired after `timeout` seconds."""
    return subprocess.run(
        command(name, *args), input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
