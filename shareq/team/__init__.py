"""Consumers and a producer at work on the event loop of a cluster in this process.

On a virtual clock they move only while the clock does: `cluster.step()`, `cluster.advance(ms)`, and every call that
waits drive them, in one order for one seed. On a running clock they work in the background. No threads of their own.
"""

from shareq.team.feed import Feed
from shareq.team.loop_poller import LoopPoller
from shareq.team.policy import COMMITS, LONGEST_MS, Policy
from shareq.team.team import Team, Worker

__all__ = ["COMMITS", "LONGEST_MS", "Feed", "LoopPoller", "Policy", "Team", "Worker"]
