"""The producer of a lane, whose epochs fence the letters of former leaders of the share-partition.

Its transactional id is that of the share-partition, but it begins no transaction: the queue gets no markers. Source:
KIP-98 for the fence; all versions of Apache Kafka take such batches.
"""

from __future__ import annotations

from shareq.broker.dead_letters.lane import Failure, Lane
from shareq.leader.state_reads import read_request, state_in
from shareq.model.actor import ANY_NODE, Answer
from shareq.model.errors import Errors
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from shareq.model.workflow import Pause, Send, SendToPersister, Workflow

PAUSES_MS = (100, 200, 400, 800)
"""Between the first attempts: the first producer of a cluster finds no coordinator yet."""

_SOON = frozenset(
    {
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.NOT_COORDINATOR,
        Errors.CONCURRENT_TRANSACTIONS,
    }
)


def claim(lane: Lane) -> Workflow[Failure | None]:
    """Get the next epoch of the lane's producer, then ask whether a later leader has read the state; if so, the lane is
    fenced.

    In this order: a leader whose epoch is higher than that of a later leader finds the later one, and does not write.
    """
    claimed = yield from _next_epoch(lane)
    if isinstance(claimed, Errors):
        return Failure(f"there is no producer id: {claimed.name}", retried=True, of="produce")
    if lane.stopping:
        return None
    reply = yield SendToPersister(read_request(lane.key, lane.sent.leader_epoch))
    state = state_in(Answer(0, reply.response, reply.error), lane.key)
    error = (reply.error or Errors.UNKNOWN_SERVER_ERROR) if state is None else state.error_code
    if error is Errors.FENCED_LEADER_EPOCH:
        lane.fenced = True
    elif error and error is not Errors.INVALID_REQUEST:  # that is the error of a state that has been deleted
        return Failure(f"its leader is not known: {error.name}", retried=True, of="produce")
    else:
        lane.new_producer(*claimed)
    return None


def _next_epoch(lane: Lane) -> Workflow[tuple[int, int] | Errors]:
    claimed = yield from _init_producer_id(lane)
    for pause_ms in PAUSES_MS:
        if claimed not in _SOON or lane.stopping:
            break
        yield Pause(pause_ms, "there is no producer id yet")
        claimed = yield from _init_producer_id(lane)
    return claimed


def _init_producer_id(lane: Lane) -> Workflow[tuple[int, int] | Errors]:
    transactional_id = f"shareq-dead-letters-{lane.key}"
    lookup = FindCoordinatorRequest(key_type=CoordinatorType.TRANSACTION, coordinator_keys=(transactional_id,))
    reply = yield Send(ANY_NODE, lookup)
    if not isinstance(reply.response, FindCoordinatorResponse):
        return Errors(reply.error)
    (found,) = reply.response.coordinators
    if found.error_code:
        return found.error_code
    reply = yield Send(found.node_id, InitProducerIdRequest(transactional_id=transactional_id))
    response = reply.response
    if not isinstance(response, InitProducerIdResponse):
        return Errors(reply.error)
    return response.error_code or (response.producer_id, response.producer_epoch)
