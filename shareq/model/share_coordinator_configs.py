"""The broker configurations of share coordinators and their topic. Source: Kafka's ShareCoordinatorConfig."""

from __future__ import annotations

from shareq.model.config_def import INT_MAX, ConfigDef
from shareq.model.messages.topics import ConfigType

SHARE_COORDINATOR_CONFIGS = (
    ConfigDef("share.coordinator.state.topic.num.partitions", 50, "Partitions of __share_group_state.", 1, INT_MAX),
    ConfigDef(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Its replicas, brokers permitting.",
        1,
        32767,
        type=ConfigType.SHORT,
    ),
    ConfigDef("share.coordinator.state.topic.min.isr", 2, "Its min.insync.replicas.", 1, 32767, type=ConfigType.SHORT),
    ConfigDef("share.coordinator.state.topic.segment.bytes", 104857600, "Its segment size.", 1, INT_MAX),
    ConfigDef("share.coordinator.state.topic.compression.codec", 0, "Its records' codec, by id.", 0, 4, unused=True),
    ConfigDef("share.coordinator.threads", 1, "Threads of the share coordinator.", 1, INT_MAX, unused=True),
    ConfigDef("share.coordinator.load.buffer.size", 5242880, "Bytes read at once in a load.", 1, INT_MAX, unused=True),
    ConfigDef("share.coordinator.append.linger.ms", -1, "The time to fill a batch.", -1, INT_MAX, unused=True),
    ConfigDef(
        "share.coordinator.cached.buffer.max.bytes",
        1048588,
        "The largest buffer that is reused for the next batch.",
        524288,
        INT_MAX,
        unused=True,
    ),
    ConfigDef("share.coordinator.snapshot.update.records.per.snapshot", 500, "Updates between two snapshots.", 0, 500),
    ConfigDef("share.coordinator.write.timeout.ms", 5000, "The time-out for the commit of a state record.", 1, INT_MAX),
    ConfigDef("share.coordinator.state.topic.prune.interval.ms", 300000, "The time between two prunings.", 1, INT_MAX),
    ConfigDef(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300000,
        "The age at which the snapshot of an unchanged key is renewed.",
        1,
        INT_MAX,
    ),
)
