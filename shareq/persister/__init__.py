"""Persisters store the state of share-partitions. A persister is an actor that answers share-state requests.

`make_persister` chooses one by `group.share.persister.class.name`. The state topic and the compacted topic have the
same persister: they differ in the records that the share coordinator writes.
"""

from __future__ import annotations

import random

from shareq.model.actor import Actor
from shareq.model.state_designs import StateDesign, design_of
from shareq.persister.control_records import ControlRecordPersister
from shareq.persister.no_op import NoOpPersister
from shareq.persister.state_topic import KAFKAS, Retries, StateTopicPersister

__all__ = ["ControlRecordPersister", "NoOpPersister", "Persister", "Retries", "StateTopicPersister", "make_persister"]

Persister = Actor
"""It answers each `Incoming` with a share-state request (83-87) by one `Respond`, which has a result for each entry of
the request. Only entries can fail; an invalid request raises ValueError."""


def make_persister(class_name: str, broker_id: int, rng: random.Random, retries: Retries = KAFKAS) -> Persister:
    """The persister of this class name; ConfigException if there is none, and the broker cannot start. `retries`: of a
    persister that sends requests to share coordinators."""
    design = design_of(class_name)
    if design is StateDesign.NONE:
        return NoOpPersister()
    kind = ControlRecordPersister if design is StateDesign.CONTROL_RECORDS else StateTopicPersister
    return kind(broker_id, rng, retries)
