"""The lab "write your own share-partition leader": its interface, scripts, and the comparison with the oracle."""

from shareq.lessons.own_leader.comparison import Difference, first_difference
from shareq.lessons.own_leader.random_steps import random_script
from shareq.lessons.own_leader.record import Leader, Record
from shareq.lessons.own_leader.scripts import SCRIPTS

__all__ = ["SCRIPTS", "Difference", "Leader", "Record", "first_difference", "random_script"]
