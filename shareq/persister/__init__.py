"""How a leader makes its state durable. A persister is an actor: share-state requests come in, answers go out.

`make_persister` chooses one by `group.share.persister.class.name`; another design is one more actor there.
"""

from __future__ import annotations

import random

from shareq.model.actor import Actor
from shareq.model.errors import ConfigException
from shareq.persister.no_op import NoOpPersister
from shareq.persister.state_topic import StateTopicPersister

__all__ = ["NoOpPersister", "Persister", "StateTopicPersister", "make_persister"]

Persister = Actor
"""It is handed `Incoming` with a share-state request (83-87), and answers each with one `Respond`, which has an entry
for each entry of the request. The call as a whole cannot fail; an absurd request raises ValueError."""

_PACKAGE = "org.apache.kafka.server.share.persister"
DEFAULT = f"{_PACKAGE}.DefaultStatePersister"
NO_OP = (f"{_PACKAGE}.NoOpStatePersister", "")


def make_persister(class_name: str, broker_id: int, rng: random.Random) -> Persister:
    """The persister that Kafka calls `class_name`; ConfigException where there is none, and the broker cannot start."""
    if class_name == DEFAULT:
        return StateTopicPersister(broker_id, rng)
    if class_name in NO_OP:
        return NoOpPersister()
    known = ", ".join(repr(name) for name in (DEFAULT, *NO_OP))
    raise ConfigException(f"group.share.persister.class.name={class_name!r}: must be one of {known}")
