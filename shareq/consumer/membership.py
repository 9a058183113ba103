"""A member of a share group: joins, sends heartbeats, takes its assignment, leaves. Source: KIP-932, "Rebalancing"."""

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
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

JOIN_EPOCH = 0


class MemberState(StrEnum):
    """STALE: left because the application did not poll. FATAL: no retry would help."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    LEAVING = "leaving"
    STALE = "stale"
    FATAL = "fatal"


class MemberEvent(StrEnum):
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


_S, _E = MemberState, MemberEvent
_MEMBERS = (_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE)

TRANSITIONS: dict[tuple[MemberState, MemberEvent], MemberState] = {
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
"""Where a member goes; an event that a state has no row for leaves it where it is."""

URGENT = frozenset({_S.JOINING, _S.ACKNOWLEDGING, _S.LEAVING})
"""States whose heartbeat does not wait for the interval."""

PATIENT = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.TOPIC_AUTHORIZATION_FAILED})
"""Errors after which even the first retry waits."""

COORDINATOR_MOVED = frozenset(
    {Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS}
)
"""Answers of a broker that does not have the group, or does not have it yet."""


class Membership:
    """Sends one heartbeat at a time. `on_assignment(partitions)` gets each new assignment, whole.

    `error` waits for the next poll, which raises it once. The time between two polls is bounded by
    `max_poll_interval_ms`: a member that nobody polls leaves, so that others get its records.
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
        self.state = MemberState.UNSUBSCRIBED
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
        self._topics_known = False  # whether the coordinator knows our present topics
        self._rejoin = False  # polled while the goodbye is still under way
        self._goodbye = False  # a heartbeat that leaves is due
        self._under_way = False
        self._generation = 0  # answers to what was asked before a change of mind do not count
        self._sent_at_ms = 0
        self._interval_ms = 0
        self._failures = 0
        self._not_before_ms = 0
        self._polling = False
        self._polled_at_ms = 0

    # ---- what the application does -----------------------------------------------------------------------------------

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Take these topics from the next heartbeat on; the next poll joins where we are no member."""
        self.topics = topics
        self._topics_known = False

    def leave(self) -> None:
        """Say goodbye, where there is anybody to say it to."""
        self.topics = ()
        self._rejoin = False
        if self.state in _MEMBERS:
            self._goodbye = self.member_epoch != JOIN_EPOCH or self._under_way
            self._move(_E.LEAVE)
            self._drop_assignment()
            if not self._goodbye:
                self._move(_E.LEFT)
        else:
            self._move(_E.LEAVE)

    @property
    def gone(self) -> bool:
        """Whether there is nothing left to say."""
        return self.state not in _MEMBERS and not self._goodbye and not self._under_way

    def polled(self) -> None:
        """A poll has begun: join where we are no member yet."""
        self._polling = True
        self._join()

    def _join(self) -> None:
        if self.state in (_S.UNSUBSCRIBED, _S.STALE):
            self.member_epoch = JOIN_EPOCH
            self._topics_known = False
            self._move(_E.POLL)
        self._rejoin = self.state is _S.LEAVING

    def poll_ended(self, now_ms: int) -> None:
        """From here on the application has `max_poll_interval_ms` until its next poll."""
        self._polling = False
        self._polled_at_ms = now_ms

    def resolved(self) -> None:
        """The assignment's topics are known: tell the coordinator that we have taken it."""
        self._move(_E.RESOLVED)

    # ---- time --------------------------------------------------------------------------------------------------------

    @property
    def wake_at_ms(self) -> int | None:
        overdue = None
        if self.state in _MEMBERS and not self._polling:
            overdue = self._polled_at_ms + self._max_poll_interval_ms
        return earliest(overdue, self._coordinator.wake_at_ms, self._heartbeat_at_ms())

    def _heartbeat_at_ms(self) -> int | None:
        """When the next heartbeat is due; while one is under way, or its receiver unknown, the answer wakes us."""
        return None if self._under_way or self._coordinator.looking else self._due_at_ms()

    def pump(self, now_ms: int) -> None:
        """Send what is due."""
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
        if self._goodbye or self.state in URGENT:
            return self._not_before_ms
        if self.state in _MEMBERS:
            return max(self._not_before_ms, self._sent_at_ms + self._interval_ms)
        return None

    def _overdue(self) -> None:
        text = f"no poll for max.poll.interval.ms={self._max_poll_interval_ms}: left the group; poll to rejoin"
        self.error = KafkaError(KafkaError._MAX_POLL_EXCEEDED, text)
        self._goodbye = self.member_epoch != JOIN_EPOCH
        self._generation += 1
        self._move(_E.OVERDUE)
        self._drop_assignment()

    # ---- heartbeats --------------------------------------------------------------------------------------------------

    def _send(self, node: int, now_ms: int) -> None:
        leaving = self._goodbye
        self._goodbye = False
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
        generation = self._generation
        self.metrics.sent(now_ms)

        def answered(response: Response | None, error: Errors, at_ms: int) -> None:
            self._under_way = False
            self.metrics.answered(at_ms - now_ms, at_ms)
            if leaving:
                self._goodbye_answered(response, at_ms)
            elif generation == self._generation and self.state in _MEMBERS:
                assert response is None or isinstance(response, ShareGroupHeartbeatResponse)
                self._answered(response, error, at_ms)

        self._calls.send(node, request, answered)

    def _goodbye_answered(self, response: Response | None, now_ms: int) -> None:
        """Repeat a goodbye that a broker without the group refused: until the session of a member that has gone runs
        out, the others lack its partitions. Any other answer, and a broken connection, is the end."""
        assert response is None or isinstance(response, ShareGroupHeartbeatResponse)
        refused = Errors.NONE if response is None else response.error_code
        if refused in COORDINATOR_MOVED and self.state in (_S.LEAVING, _S.STALE) and not self._rejoin:
            self._goodbye = True
            self._refused(refused, None, now_ms)
            return
        self.member_epoch = JOIN_EPOCH
        self._move(_E.LEFT)
        if self._rejoin and self.topics:
            self._join()  # the poll that asked for it may have ended

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

    def _assigned(self, assignment: ShareGroupHeartbeatResponse.Assignment | None, now_ms: int) -> None:
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
        """At once where Kafka's clients do not wait, but only the first time: then the back-off counts."""
        self._topics_known = False
        self._failures += 1
        patient = error in PATIENT or self._failures > 1
        self._not_before_ms = now_ms + self._backoff.delay_ms(self._failures) if patient else now_ms
        self._sent_at_ms = min(self._sent_at_ms, now_ms - self._interval_ms)

    def _fail(self, error: Errors, message: str | None) -> None:
        if self.state in _MEMBERS:
            self.error = KafkaError(error, message, fatal=True)
        self._coordinator.fatal = None
        self._goodbye = False
        self._move(_E.LEFT if self.state is _S.LEAVING else _E.FATAL)
        self._drop_assignment()

    # ---- small moves -------------------------------------------------------------------------------------------------

    def _move(self, event: MemberEvent) -> None:
        state = TRANSITIONS.get((self.state, event), self.state)
        if event in (_E.FENCED, _E.OVERDUE, _E.LEAVE, _E.FATAL):
            self._generation += 1
        self.state = state

    def _drop_assignment(self) -> None:
        if self.assigned:
            self.assigned = frozenset()
            self._on_assignment(self.assigned)
