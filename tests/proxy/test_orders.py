"""Messages and polls in every order that they can have: the journal is the same. BEHAVIOUR.md, 4.8 to 4.10.

An acknowledgement passes as a request (R), is applied by the leader (A), and its response passes (P). A poll of the
durable state may fall anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from shareq import ledger
from shareq.coordinator.share_state.state import KeyState
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.events import DurableStateRead, Event, HoldEnded, MemberJoined, MemberLeft, MembersBypass
from shareq.model.ids import TopicId
from shareq.model.messages.base import Request, Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import (
    DescribedAssignment,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import AcknowledgeType, RecordState
from shareq.observer.poll_result import PollResult
from shareq.observer.timed_journal import TimedJournal
from shareq.proxy import watch as watch_module
from shareq.proxy.link import Waiting
from shareq.proxy.watch import Watch
from shareq.trace import Journal
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import encode_request, encode_response

TOPIC = TopicId("t" * 21 + "g")
LOCK_MS = 1000
LIMIT = GroupConfig().delivery_count_limit
VERSIONS = {3: 12, 76: 1, 78: 1, 79: 1}
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
ACKNOWLEDGED, ARCHIVED, AVAILABLE = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED, RecordState.AVAILABLE


class NoCore:
    """An observer that polls only when the test has a result for it."""

    made: ClassVar[list[NoCore]] = []

    def __init__(self, *_: object, writer: Any, **__: object) -> None:
        self.writer = writer
        self.poll_now = None
        self.made.append(self)


class NoTransport:
    """Connects nothing."""

    def rng(self) -> None: ...
    def connect(self, *_: object) -> NoTransport:
        return self

    def run(self, action: object) -> None: ...


class WatchStage:
    """The watch of a tap: group `g`, member `a`, records 0 and 1 of one partition, a time in ms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watch_module, "ObserverCore", NoCore)
        monkeypatch.setattr(watch_module, "transport_for", lambda *_: NoTransport())
        NoCore.made.clear()
        self.journal = Journal()
        self.watch = Watch(TimedJournal(self.journal), "", 500, self._later)
        self.now_ms = 0
        self.members: tuple[str, ...] = ("a",)
        self._later_calls: list[Callable[[int], object]] = []

    def _later(self, read: Callable[[int], object]) -> None:
        self._later_calls.append(read)

    # ---- messages ----------------------------------------------------------------------------------------------------

    def ask(self, request: Request) -> Waiting:
        self.now_ms += 1
        key, version = request.API_KEY, VERSIONS[request.API_KEY]
        frame = bytearray(encode_request(request, version, 7, "anna"))
        asked = Waiting(key, version)
        if self.watch.reads_request(key, version):
            asked.token = self.watch.request(1, 1, asked, frame, self.now_ms)
        return asked

    def answer(self, asked: Waiting, response: Response) -> None:
        self.now_ms += 1
        frame = encode_response(RequestHeader(asked.api_key, asked.version, 7, "anna"), response)
        self.watch.response(asked, bytearray(frame), self.now_ms)

    def begin(self) -> None:
        """Metadata, the first heartbeat, and a first poll."""
        partition = MetadataResponse.Partition(partition_index=0, leader_id=1, leader_epoch=0)
        self.topic = MetadataResponse.Topic(name="orders", topic_id=TOPIC, partitions=(partition,))
        self.answer(
            self.ask(MetadataRequest(topics=())),
            MetadataResponse(brokers=(), cluster_id="c", controller_id=1, topics=(self.topic,)),
        )
        self.answer(self.ask_beat(0), self.beaten(1))
        self.poll(0)

    @staticmethod
    def ask_beat_request(epoch: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id="g", member_id="a", member_epoch=epoch, subscribed_topic_names=("orders",) if epoch == 0 else None
        )

    def ask_beat(self, epoch: int) -> Waiting:
        return self.ask(self.ask_beat_request(epoch))

    @staticmethod
    def beaten(epoch: int) -> ShareGroupHeartbeatResponse:
        return ShareGroupHeartbeatResponse(member_id="a", member_epoch=epoch, heartbeat_interval_ms=1000)

    def acquire(self, count: int) -> None:
        """`a` gets the records 0 and 1 with this delivery count."""
        part = ShareFetchRequest.Partition(partition_index=0)
        topics = (ShareFetchRequest.Topic(topic_id=TOPIC, partitions=(part,)),)
        asked = self.ask(ShareFetchRequest(group_id="g", member_id="a", share_session_epoch=0, topics=topics))
        acquired = (AcquiredRecords(first_offset=0, last_offset=1, delivery_count=count),)
        given = ShareFetchResponse.Partition(partition_index=0, records=(), acquired_records=acquired)
        responses = (ShareFetchResponse.Topic(topic_id=TOPIC, partitions=(given,)),)
        self.answer(asked, ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=responses))

    def ask_acknowledge(self, kind: int) -> Waiting:
        batch = AcknowledgementBatch(first_offset=0, last_offset=1, acknowledge_types=(kind,))
        part = ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=(batch,))
        topics = (ShareAcknowledgeRequest.Topic(topic_id=TOPIC, partitions=(part,)),)
        return self.ask(ShareAcknowledgeRequest(group_id="g", member_id="a", share_session_epoch=1, topics=topics))

    def acknowledged(self, asked: Waiting, error: Errors = Errors.NONE) -> None:
        part = ShareAcknowledgeResponse.Partition(partition_index=0, error_code=error)
        topics = (ShareAcknowledgeResponse.Topic(topic_id=TOPIC, partitions=(part,)),)
        self.answer(asked, ShareAcknowledgeResponse(acquisition_lock_timeout_ms=LOCK_MS, responses=topics))

    # ---- polls -------------------------------------------------------------------------------------------------------

    def poll(self, spso: int, *runs: StateBatch, begun_ms: int | None = None) -> None:
        """A poll has ended, and is joined behind what has passed."""
        self.now_ms += 1
        described = tuple(
            ShareGroupDescribeResponse.Member(
                member_id=member, rack_id=None, member_epoch=1, client_id="anna", client_host="/127.0.0.1",
                subscribed_topic_names=("orders",), assignment=DescribedAssignment(),
            )
            for member in self.members
        )  # fmt: skip
        result = PollResult(
            topics={"orders": self.topic},
            group=ShareGroupDescribeResponse.DescribedGroup(group_id="g", group_epoch=1, members=described),
            group_described=True,
            states={("orders", 0): KeyState(0, start_offset=spso, state_batches=runs)},
            log_starts={("orders", 0): 0},
            log_ends={("orders", 0): 2},
        )
        (core,) = NoCore.made
        core.writer.write_poll(result, self.now_ms, self.now_ms if begun_ms is None else begun_ms)
        self._later_calls.pop()(self.now_ms)

    # ---- the journal -------------------------------------------------------------------------------------------------

    def events(self, *types: type[Event]) -> list[Event]:
        return [entry.event for entry in self.journal if isinstance(entry.event, types)]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> WatchStage:
    made = WatchStage(monkeypatch)
    made.begin()
    return made


def outcome(kind: int, count: int) -> RecordState:
    if kind == ACCEPT:
        return ACKNOWLEDGED
    return ARCHIVED if kind == REJECT or count >= LIMIT else AVAILABLE


ORDERS = [
    pytest.param("before R P", id="before the request"),
    pytest.param("R before P", id="between the messages, before it is applied"),
    pytest.param("R after P", id="between the messages, after it is applied"),
    pytest.param("R passed P", id="between the messages, the SPSO has passed"),
    pytest.param("R after after P", id="twice between the messages"),
    pytest.param("R after passed P", id="twice, first as a run"),
    pytest.param("R P before", id="read before, joined after"),
    pytest.param("R P after", id="after the response"),
    pytest.param("R after lost", id="the connection is lost"),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("kind", "count"),
    [(ACCEPT, 1), (REJECT, 1), (RELEASE, 1), (RELEASE, LIMIT), (REJECT, LIMIT), (ACCEPT, LIMIT)],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_an_acknowledgement_counts_once_wherever_the_poll_falls(
    stage: WatchStage, order: str, kind: AcknowledgeType, count: int
) -> None:
    """BEHAVIOUR.md, 4.8, 4.9."""
    stage.acquire(count)
    state = outcome(kind, count)
    asked = None
    for step in order.split():
        if step == "R":
            asked = stage.ask_acknowledge(kind)
        elif step == "P":
            assert asked is not None
            stage.acknowledged(asked)
        elif step == "lost":
            stage.watch.disconnected(1, stage.now_ms)
        elif step == "before":
            stage.poll(0, *([StateBatch(0, 1, 0, count - 1)] if count > 1 else []))
        elif step == "passed" and state is not AVAILABLE:
            stage.poll(2)
        else:
            stage.poll(0, StateBatch(0, 1, int(state), count))
    (part,) = ledger(stage.journal, "g", "orders").values()
    accepted, archived = (2 * (state is one) for one in (ACKNOWLEDGED, ARCHIVED))
    assert (part.times_accepted.sum(), part.times_archived.sum()) == (accepted, archived)
    written = stage.events(HoldEnded, DurableStateRead)
    ends = [event for event in written if isinstance(event, HoldEnded)]
    if "lost" not in order:
        cause = (0, 2, kind.name.lower(), state, False)
        assert [(e.first, e.end, e.cause, e.state, e.inferred) for e in ends] == [cause]
    if kind == ACCEPT and "R after" in order:
        assert isinstance(written[1], HoldEnded), "before the durable state that shows it"


def test_a_refused_acknowledgement_ends_no_hold(stage: WatchStage) -> None:
    """BEHAVIOUR.md, 4.9: the durable state is that of an earlier delivery."""
    stage.acquire(2)
    asked = stage.ask_acknowledge(ACCEPT)
    stage.poll(0, StateBatch(0, 1, int(AVAILABLE), 1))
    stage.acknowledged(asked, Errors.INVALID_RECORD_STATE)
    assert stage.events(HoldEnded) == []


def test_a_lock_that_has_run_out_is_not_ended_by_the_spso(stage: WatchStage) -> None:
    """BEHAVIOUR.md, 4.9: another member may have finished the record."""
    stage.acquire(1)
    asked = stage.ask_acknowledge(ACCEPT)
    stage.now_ms += LOCK_MS
    stage.poll(2)
    assert stage.events(HoldEnded) == []
    stage.acknowledged(asked, Errors.INVALID_RECORD_STATE)
    assert stage.events(HoldEnded) == []


# ---- members ---------------------------------------------------------------------------------------------------------


def test_a_member_whose_first_heartbeat_is_under_way_does_not_bypass(monkeypatch: pytest.MonkeyPatch) -> None:
    """BEHAVIOUR.md, 4.10: the poll describes it before its response has passed."""
    stage = WatchStage(monkeypatch)
    stage.watch.follow("g")
    partition = MetadataResponse.Partition(partition_index=0, leader_id=1, leader_epoch=0)
    stage.topic = MetadataResponse.Topic(name="orders", topic_id=TOPIC, partitions=(partition,))
    asked = stage.ask_beat(0)
    stage.poll(0)
    stage.answer(asked, stage.beaten(1))
    stage.poll(0)
    assert stage.events(MembersBypass) == [MembersBypass("g", ())]
    assert stage.events(MemberJoined) == [MemberJoined("g", "a", "anna", ("orders",))]


def test_a_member_that_leaves_has_left_by_its_heartbeat(stage: WatchStage) -> None:
    """BEHAVIOUR.md, 4.10: the poll does not describe it any more, before its response has passed."""
    asked = stage.ask_beat(-1)
    stage.members = ()
    stage.poll(0)
    assert stage.events(MemberLeft) == []
    stage.answer(asked, stage.beaten(-1))
    assert stage.events(MemberLeft) == [MemberLeft("g", "a", "left")]
