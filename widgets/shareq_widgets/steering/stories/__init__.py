"""The presets: failures of consumers and brokers, shown in steps with a question each."""

from shareq_widgets.steering.stories.of_brokers import COORDINATOR_FAILOVER, LEADER_FAILOVER, ROLLING_RESTART
from shareq_widgets.steering.stories.of_consumers import CRASHED_CONSUMER, HEAD_OF_LINE_BLOCKING, POISON, WINDOW_FULL
from shareq_widgets.steering.stories.slow_consumer import SLOW_CONSUMER
from shareq_widgets.steering.stories.story import Preset, Step, Story

STORIES: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        POISON,
        CRASHED_CONSUMER,
        SLOW_CONSUMER,
        HEAD_OF_LINE_BLOCKING,
        WINDOW_FULL,
        LEADER_FAILOVER,
        COORDINATOR_FAILOVER,
        ROLLING_RESTART,
    )
}
"""By name, the simplest first."""

__all__ = ["STORIES", "Preset", "Step", "Story"]
