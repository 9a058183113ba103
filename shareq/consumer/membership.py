"""A member of a share group: join, heartbeats, assignment, leave. Source: KIP-932, "Rebalancing"."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.coordinator import CoordinatorLookup
from shareq.consumer.metrics import HeartbeatMetrics
from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.base import Response
from shareq.model.messages.share_fetch import FINAL_EPOCH
from shareq.model.messages.share_group import MemberAssignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

JOIN_EPOCH = 0


class MembershipState(StrEnum):
    """STALE: has left because the application did not poll. FATAL: a retry cannot succeed."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    LEAVING = "leaving"
    STALE = "stale"
    FATAL = "fatal"


class MembershipEvent(StrEnum):
    POLL = "poll"
    ANSWER = "answer"
    ASSIGNMENT = "assignment"
    RESOLVED = "resolved"
    SENT = "sent"
    FENCED = "fenced"
    OVERDUE = "overdue"
    LEAVE = "leave"
    LEFT = "left"
    FATAL = "fatal"


_S, _E = MembershipState, MembershipEvent
_MEMBERS = (_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE)

TRANSITIONS: dict[tuple[MembershipState, MembershipEvent], MembershipState] = {
    (_S.UNSUBSCRIBED, _E.POLL): _S.JOINING,
    (_S.STALE, _E.POLL): _S.JOINING,
    (_S.JOINING, _E.ANSWER): _S.STABLE,
    (_S.RECONCILING, _E.RESOLVED): _S.ACKNOWLEDGING,
    (_S.ACKNOWLEDGING, _E.SENT): _S.STABLE,
    (_S.LEAVING, _E.LEFT): _S.UNSUBSCRIBED,
    (_S.STALE, _E.LEAVE): _S.UNSUBSCRIBED,
    **{(state, _E.ASSIGNMENT): _S.RECONCILING for state in _MEMBERS},
    **{(state, _E.FENCED): _S.JOINING for state in _MEMBERS},
    **{(state, _E.OVERDUE): _S.STALE for state in _MEMBERS},
    **{(state, _E.LEAVE): _S.LEAVING for state in _MEMBERS},
    **{(state, _E.FATAL): _S.FATAL for state in _MEMBERS},
}
"""The next state. An event without a row for the state is ignored."""

URGENT = frozenset({_S.JOINING, _S.ACKNOWLEDGING, _S.LEAVING})
"""States that send a heartbeat without waiting for the interval."""

DELAYED_RETRY = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.TOPIC_AUTHORIZATION_FAILED})
"""Errors after which even the first retry waits."""

COORDINATOR_MOVED = frozenset(
    {Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS}
)
"""Errors of a broker that does not coordinate the group, or has not loaded it yet."""


class Membership:
    """Sends one heartbeat at a time. `on_assignment(partitions)` receives each new assignment as a whole.

    The next poll raises `error`, once. If the time between two polls exceeds `max_poll_interval_ms`, the member leaves
    the group, so that other members receive its records.
    """

    def __init__(
        self,
        calls: Calls,
        backoff: Backoff,
        group_id: str,
        member_id: str,
        *,
        rack_id: str | None,
        max_poll_interval_ms: int,
        on_assignment: Callable[[frozenset[TopicIdPartition]], None],
    ) -> None:
        self.state = MembershipState.UNSUBSCRIBED
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = JOIN_EPOCH
        self.topics: tuple[str, ...] = ()
        self.assigned: frozenset[TopicIdPartition] = frozenset()
        self.error: KafkaError | None = None
        self.metrics = HeartbeatMetrics()
        self._calls = calls
        self._backoff = backoff
        self._coordinator = CoordinatorLookup(calls, backoff, group_id)
        self._rack_id = rack_id
        self._max_poll_interval_ms = max_poll_interval_ms
        self._on_assignment = on_assignment
        self._topics_known = False  # true if the coordinator has the current subscription
        self._join_after_leave = False  # a poll has begun while the leave heartbeat is in progress
        self._leave_due = False  # a leave heartbeat is due
        self._under_way = False
        self._attempt = 0  # a response to an earlier attempt is ignored
        self._sent_at_ms = 0
        self._interval_ms = 0
        self._failures = 0
        self._not_before_ms = 0
        self._polling = False
        self._polled_at_ms = 0

    # ---- calls of the application ------------------------------------------------------------------------------------

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to these topics from the next heartbeat on. If the consumer is not a member, the next poll
        joins."""
        self.topics = topics
        self._topics_known = False

    def leave(self) -> None:
        """Leave the group. Sends a leave heartbeat if the coordinator may have the member."""
        self.topics = ()
        self._join_after_leave = False
        if self.state in _MEMBERS:
            self._leave_due = self.member_epoch != JOIN_EPOCH or self._under_way
            self._move(_E.LEAVE)
            self._drop_assignment()
            if not self._leave_due:
                self._move(_E.LEFT)
        else:
            self._move(_E.LEAVE)

    @property
    def gone(self) -> bool:
        """True if no heartbeat is due or in progress."""
        return self.state not in _MEMBERS and not self._leave_due and not self._under_way

    def polled(self) -> None:
        """A poll has begun: join, if the consumer is not a member."""
        self._polling = True
        self._join()

    def _join(self) -> None:
        if self.state in (_S.UNSUBSCRIBED, _S.STALE):
            self.member_epoch = JOIN_EPOCH
            self._topics_known = False
            self._move(_E.POLL)
        self._join_after_leave = self.state is _S.LEAVING

    def poll_ended(self, now_ms: int) -> None:
        """A poll has ended: the next one must begin within `max_poll_interval_ms`."""
        self._polling = False
        self._polled_at_ms = now_ms

    def resolved(self) -> None:
        """The assignment's topics are in the metadata: confirm the assignment to the coordinator."""
        self._move(_E.RESOLVED)

    # ---- time --------------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        overdue = None
        if self.state in _MEMBERS and not self._polling:
            overdue = self._polled_at_ms + self._max_poll_interval_ms
        return earliest(overdue, self._coordinator.wake_at_ms, self._heartbeat_at_ms())

    def _heartbeat_at_ms(self) -> int | None:
        """The time of the next heartbeat. None during a heartbeat or a coordinator lookup: the response wakes the
        actor."""
        return None if self._under_way or self._coordinator.looking else self._due_at_ms()

    def pump(self, now_ms: int) -> None:
        """Send due requests."""
        if self.state in _MEMBERS and not self._polling and now_ms >= self._polled_at_ms + self._max_poll_interval_ms:
            self._overdue()
        if self._coordinator.fatal is not None:
            self._fail(*self._coordinator.fatal)
        due_at_ms = self._due_at_ms()
        if due_at_ms is None or self._under_way or now_ms < due_at_ms:
            self._coordinator.pump(now_ms)
            return
        if self._coordinator.node is None:
            self._coordinator.want()
            self._coordinator.pump(now_ms)
        else:
            self._send(self._coordinator.node, now_ms)

    def _due_at_ms(self) -> int | None:
        if self._leave_due or self.state in URGENT:
            return self._not_before_ms
        if self.state in _MEMBERS:
            return max(self._not_before_ms, self._sent_at_ms + self._interval_ms)
        return None

    def _overdue(self) -> None:
        text = f"no poll for max.poll.interval.ms={self._max_poll_interval_ms}: left the group; poll to rejoin"
        self.error = KafkaError(KafkaError._MAX_POLL_EXCEEDED, text)
        self._leave_due = self.member_epoch != JOIN_EPOCH
        self._attempt += 1
        self._move(_E.OVERDUE)
        self._drop_assignment()

    # ---- heartbeats --------------------------------------------------------------------------------------------------

    def _send(self, node: int, now_ms: int) -> None:
        leaving = self._leave_due
        self._leave_due = False
        self._under_way = True
        self._sent_at_ms = now_ms
        topics = None if leaving or (self._topics_known and self.state is not _S.JOINING) else self.topics
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=FINAL_EPOCH if leaving else JOIN_EPOCH if self.state is _S.JOINING else self.member_epoch,
            rack_id=self._rack_id if self.state is _S.JOINING else None,
            subscribed_topic_names=topics,
        )
        self._topics_known = True
        self._move(_E.SENT)
        generation = self._attempt
        self.metrics.sent(now_ms)

        def answered(response: Response | None, error: Errors, at_ms: int) -> None:
            self._under_way = False
            self.metrics.answered(at_ms - now_ms, at_ms)
            if leaving:
                self._left(response, at_ms)
            elif generation == self._attempt and self.state in _MEMBERS:
                assert response is None or isinstance(response, ShareGroupHeartbeatResponse)
                self._answered(response, error, at_ms)

        self._calls.send(node, request, answered)

    def _left(self, response: Response | None, now_ms: int) -> None:
        """Repeat a leave heartbeat that was refused by a broker that is not the coordinator: until the member's session
        times out, its partitions lack a consumer. Any other response, or a broken connection, ends the membership."""
        assert response is None or isinstance(response, ShareGroupHeartbeatResponse)
        refused = Errors.NONE if response is None else response.error_code
        if refused in COORDINATOR_MOVED and self.state in (_S.LEAVING, _S.STALE) and not self._join_after_leave:
            self._leave_due = True
            self._refused(refused, None, now_ms)
            return
        self.member_epoch = JOIN_EPOCH
        self._move(_E.LEFT)
        if self._join_after_leave and self.topics:
            self._join()  # the poll that requested the join may have ended

    def _answered(self, response: ShareGroupHeartbeatResponse | None, error: Errors, now_ms: int) -> None:
        if response is None:
            self._coordinator.forget()
            self._try_again(error, now_ms)
        elif response.error_code:
            self._refused(response.error_code, response.error_message, now_ms)
        else:
            self._failures = 0
            self.member_epoch = response.member_epoch
            self._interval_ms = response.heartbeat_interval_ms
            self._assigned(response.assignment, now_ms)

    def _assigned(self, assignment: MemberAssignment | None, now_ms: int) -> None:
        target = self.assigned
        if assignment is not None:
            target = frozenset(
                TopicIdPartition(tp.topic_id, index) for tp in assignment.topic_partitions for index in tp.partitions
            )
        if target == self.assigned:
            self._move(_E.ANSWER)
            return
        self.assigned = target
        self.metrics.reconciled(now_ms)
        self._move(_E.ASSIGNMENT)
        self._on_assignment(target)

    def _refused(self, error: Errors, message: str | None, now_ms: int) -> None:
        if error in (Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_MEMBER_EPOCH):
            self.member_epoch = JOIN_EPOCH
            self._move(_E.FENCED)
            self._drop_assignment()
            self._try_again(error, now_ms)
        elif error in (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE):
            self._coordinator.forget()
            self._try_again(error, now_ms)
        elif error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            self._try_again(error, now_ms)
        elif error is Errors.TOPIC_AUTHORIZATION_FAILED:
            self.error = KafkaError(error, message)
            self._try_again(error, now_ms)
        else:
            self._fail(error, message)

    def _try_again(self, error: Errors, now_ms: int) -> None:
        """Retry: at once after the first failure, as Kafka's clients do, except for DELAYED_RETRY; then with
        back-off."""
        self._topics_known = False
        self._failures += 1
        patient = error in DELAYED_RETRY or self._failures > 1
        self._not_before_ms = now_ms + self._backoff.delay_ms(self._failures) if patient else now_ms
        self._sent_at_ms = min(self._sent_at_ms, now_ms - self._interval_ms)

    def _fail(self, error: Errors, message: str | None) -> None:
        if self.state in _MEMBERS:
            self.error = KafkaError(error, message, fatal=True)
        self._coordinator.fatal = None
        self._leave_due = False
        self._move(_E.LEFT if self.state is _S.LEAVING else _E.FATAL)
        self._drop_assignment()

    # ---- state -------------------------------------------------------------------------------------------------------

    def _move(self, event: MembershipEvent) -> None:
        state = TRANSITIONS.get((self.state, event), self.state)
        if event in (_E.FENCED, _E.OVERDUE, _E.LEAVE, _E.FATAL):
            self._attempt += 1
        self.state = state

    def _drop_assignment(self) -> None:
        if self.assigned:
            self.assigned = frozenset()
            self._on_assignment(self.assigned)
