"""Authorization: each request is checked against the rights of its sender before it is routed. See BEHAVIOUR.md."""

from shareq.broker.authorization.rules import RULES
from shareq.broker.authorization.rulings import Filtered, Ruling

__all__ = ["RULES", "Filtered", "Ruling"]
