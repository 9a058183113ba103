"""Ten broken brokers for the lab "find the bug", the sound one, and what a crew sees of each."""

from shareq.lessons.broken.run import Run, run
from shareq.lessons.broken.seen import NOTHING, History, Seen
from shareq.lessons.broken.small_broker import LIMIT, LOCK_S, LOCKS, RECORDS, SmallBroker

__all__ = ["LIMIT", "LOCKS", "LOCK_S", "NOTHING", "RECORDS", "History", "Run", "Seen", "SmallBroker", "run"]
