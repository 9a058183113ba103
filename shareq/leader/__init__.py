"""The share-partition leader: in-flight records, acquisition locks, share sessions, fetches and acknowledgements."""

from shareq.leader.experiments.staging import StagingShareLeader
from shareq.leader.leader import ShareLeader
from shareq.model.configs import BrokerConfig
from shareq.model.experiments import ENABLE
from shareq.model.time_of_day import TimeOfDay, same_time

__all__ = ["ShareLeader", "make_share_leader"]


def make_share_leader(
    broker_id: int, config: BrokerConfig, *, traced: bool, sole: bool = False, time_of_day: TimeOfDay = same_time
) -> ShareLeader:
    """The share-partition leader of a broker with this configuration: with experiments if they are enabled. `sole`: see
    `LeaderContext`."""
    kind = StagingShareLeader if config[ENABLE] else ShareLeader
    return kind(broker_id, traced=traced, sole=sole, time_of_day=time_of_day)
