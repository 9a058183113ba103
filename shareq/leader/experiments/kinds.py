"""Which share-partition a group has: Kafka's, or one of an experiment."""

from __future__ import annotations

from shareq.leader.experiments.expiring_share_partition import ExpiringSharePartition
from shareq.leader.experiments.keyed_share_partition import KeyedSharePartition
from shareq.leader.share_partition import SharePartition
from shareq.model.experiments import Experiments


def kind_of_share_partition(experiments: Experiments | None) -> type[SharePartition]:
    """The class for a group with these experiments; None: there are none."""
    if experiments is None:
        return SharePartition
    return KeyedSharePartition if experiments.key_ordering == "key" else ExpiringSharePartition
