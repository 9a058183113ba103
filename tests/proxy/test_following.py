"""A view of a tap's address in another process: its journal is that of the tap. BEHAVIOUR.md, section 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq import AcknowledgeType, Cluster, observe, view
from shareq.admin.core import Pause, Reply, Send
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.events import Event, HeartbeatReceived, ObservationDisturbed, RecordsHeld
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.tap_journal import ReadJournalRequest, ReadJournalResponse
from shareq.observer import Observer, TapFollower
from shareq.observer.tap_follower import ADMITTED_MS, Following
from shareq.observer.views import watched
from shareq.proxy import Tap, tap
from shareq.trace import Journal
from shareq.trace.journal.jsonl import page
from shareq_widgets import control_room, locks, strip
from shareq_widgets.show.source import Wishes, find
from tests.polling import PATIENCE_S, QUICK, take
from tests.proxy.stage import GROUP, address, consumer, produce, served
from tests.widgets.test_show import result_of
from tests.wire.raw import quiet_ports


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with served(2) as cluster:
        yield cluster


def test_the_journal_of_a_follower_is_that_of_the_tap(cluster: Cluster, tapped: Tap) -> None:
    """BEHAVIOUR.md, 5.2, 5.5: what was before, and what comes then."""
    produce(tapped.bootstrap_servers, 0, 14)
    anna = consumer(tapped.bootstrap_servers, "anna")
    first = take(anna, 7)
    with TapFollower(tapped.bootstrap_servers, GROUP) as follower:
        assert follower.wait(lambda: follower.complete, PATIENCE_S)
        assert follower.journal.origin_ms == tapped.journal.origin_ms
        for message in first:
            anna.acknowledge(message, AcknowledgeType.RELEASE)
        anna.commit_sync()
        anna.close()
        assert tapped.refresh(PATIENCE_S)
        total = tapped.journal.total
        assert follower.wait(lambda: follower.journal.total >= total, PATIENCE_S)
        assert follower.journal.entries()[:total] == tapped.journal.entries()[:total]
        seen = follower.view("orders").snapshot(follower.view("orders").total())
        assert seen["text"] == tapped.view(GROUP, "orders").snapshot(tapped.view(GROUP, "orders").total())["text"]
        assert abs(follower.now_ms - tapped.now_ms) < PATIENCE_S * 1000


def test_the_page_of_a_taps_address_shows_holders_and_locks(tapped: Tap) -> None:
    """As `shareq show` makes it, in a kernel of its own."""
    produce(tapped.bootstrap_servers, 0, 7)
    anna = consumer(tapped.bootstrap_servers, "anna")
    take(anna, 7)
    assert tapped.refresh(PATIENCE_S)
    room = result_of(find(tapped.bootstrap_servers, Wishes(GROUP, "orders", 0)).code("light"))
    snapshot = room.screen.strip.snapshot
    (member,) = snapshot["members"]
    assert (member["name"], member["held"], snapshot["tapped"]) == ("anna", 7, True)
    assert member["deadline_ms"] > snapshot["now_ms"]
    room.close()
    anna.close()


@pytest.mark.parametrize("look", [view, strip, locks, control_room])
def test_views_of_a_taps_address_follow_it(tapped: Tap, look: Callable[..., Any]) -> None:
    produce(tapped.bootstrap_servers, 0, 3)
    anna = consumer(tapped.bootstrap_servers, "anna")
    take(anna, 3)
    assert tapped.refresh(PATIENCE_S)
    place = {"group": GROUP} if look is locks else {"group": GROUP, "topic": "orders"}
    shown = look(tapped.bootstrap_servers, **place)
    picture = {view: "_repr_html_", control_room: "picture"}.get(look, "to_svg")
    assert "anna" in getattr(shown, picture)()
    shown.close()
    anna.close()


def test_a_group_that_no_member_has_joined_through_the_tap_is_observed(cluster: Cluster, tapped: Tap) -> None:
    """BEHAVIOUR.md, 5.5."""
    produce(address(cluster), 0, 3)
    beside = consumer(address(cluster), "beside")
    take(beside, 3)
    assert not tapped.groups
    with watched(tapped.bootstrap_servers, GROUP) as follower:
        assert isinstance(follower, TapFollower)
        assert follower.complete
        assert tapped.groups == [GROUP]
        assert follower.wait(lambda: follower.view("orders").snapshot()["log_end"] == 3, PATIENCE_S)
    beside.close()


def test_what_is_no_tap_is_observed(cluster: Cluster) -> None:
    with watched(address(cluster), GROUP) as observer, observe(cluster.bootstrap_servers, GROUP):
        assert isinstance(observer, Observer)
    with watched(cluster.bootstrap_servers, GROUP) as observer:
        assert isinstance(observer, Observer)


def test_a_view_says_that_the_tap_has_ended_and_ends_with_the_next_tap() -> None:
    """BEHAVIOUR.md, 5.6."""
    with Cluster(brokers=1, clock="wall", config=QUICK) as cluster, cluster.serve():
        cluster.create_topic("orders")
        (port,) = quiet_ports(1)
        with tap(address(cluster), port=port, interval_ms=50) as first:
            follower = watched(first.bootstrap_servers, GROUP)
            assert isinstance(follower, TapFollower)
        assert follower.wait(lambda: reasons(follower.journal) != [], PATIENCE_S)
        assert reasons(follower.journal)[0].startswith("the tap does not answer: ")
        with tap(address(cluster), port=port, interval_ms=50):
            assert follower.wait(lambda: follower.closed, PATIENCE_S)
    assert "it has started again: open the view again" in follower.trouble
    assert reasons(follower.journal)[-1] == follower.trouble
    follower.close()


def test_a_tap_of_a_tap_answers_with_its_own_journal(tapped: Tap) -> None:
    with tap(tapped.bootstrap_servers, interval_ms=50) as outer:
        outer.follow(GROUP)
        assert outer.refresh(PATIENCE_S)
        with watched(outer.bootstrap_servers, GROUP) as follower:
            assert follower.journal.origin_ms == outer.journal.origin_ms
        assert GROUP not in tapped.groups


# ---- the operation ---------------------------------------------------------------------------------------------------


def reasons(journal: Journal) -> list[str]:
    events = [entry.event for entry in journal.select(ObservationDisturbed)]
    return [event.reason for event in events if isinstance(event, ObservationDisturbed)]


NOW_MS = 5_000
BROKEN = Reply(None, Errors.NETWORK_EXCEPTION, "connection refused")


class FollowingStage:
    """A journal of a tap, and what follows it."""

    def __init__(self, capacity: int | None = None) -> None:
        self.tapped = Journal(1_000, capacity=capacity)
        self.journal = Journal()
        self.following = Following(self.journal, "g")
        self.order = 0

    def write(self, *events: Event) -> None:
        for event in events:
            self.tapped.record(1_000 + self.tapped.total, 2, event)

    def beat(self, count: int) -> None:
        self.write(*[HeartbeatReceived("g", "m", 1, Errors.NONE)] * count)

    def read(self, most: int = 1 << 20, journal: Journal | None = None) -> None:
        """A response with what the tap's journal has."""
        tapped = self.tapped if journal is None else journal
        content = page(tapped, self.following._next or 0, most)
        response = ReadJournalResponse(now_ms=NOW_MS + 40, total=tapped.total, journal=content)
        self.following.take(Reply(response, Errors.NONE), NOW_MS, NOW_MS)


def steps(following: Following, now_ms: int) -> list[Request | int]:
    """The requests and the pauses of a poll whose requests are answered."""
    poll, found, answer = following.poll(now_ms), list[Any](), None
    while True:
        try:
            step = poll.send(answer)
        except StopIteration:
            return found
        if isinstance(step, Pause):
            found.append(step.ms)
            answer = None
        else:
            (send,) = step
            assert isinstance(send, Send)
            found.append(send.request)
            answer = [Reply(MetadataResponse(brokers=(), cluster_id="c", controller_id=0), Errors.NONE)]


def test_a_poll_asks_for_what_follows_and_is_admitted_again_at_times() -> None:
    stage = FollowingStage()
    stage.beat(3)
    metadata = MetadataRequest(topics=())
    first, asked = steps(stage.following, 0)
    assert isinstance(asked, ReadJournalRequest)
    assert (first, asked.group_id, asked.from_order) == (metadata, "g", 0)
    stage.read()
    (asked,) = steps(stage.following, ADMITTED_MS - 1)
    assert isinstance(asked, ReadJournalRequest)
    assert asked.from_order == 3
    assert steps(stage.following, ADMITTED_MS)[0] == metadata
    stage.following.take(BROKEN, NOW_MS, NOW_MS)
    pause, again, _ = steps(stage.following, ADMITTED_MS + 1)
    assert isinstance(pause, int)
    assert again == metadata


def test_pages_are_appended_with_their_orders_and_times() -> None:
    stage = FollowingStage()
    stage.beat(30)
    for _ in range(40):
        stage.read(most=300)
    assert stage.journal.entries() == stage.tapped.entries()
    assert (stage.following.caught_up, stage.following.ahead_ms) == (True, 40)
    stage.beat(1)
    stage.beat(5)
    stage.read(most=1)
    assert not stage.following.caught_up


def test_what_a_tap_has_dropped_before_is_counted() -> None:
    """BEHAVIOUR.md, 5.6."""
    stage = FollowingStage(capacity=10)
    stage.beat(35)
    stage.read()
    assert stage.journal.entries() == stage.tapped.entries()
    assert stage.journal.dropped == 25


def test_what_a_tap_has_dropped_since_ends_the_journal() -> None:
    """BEHAVIOUR.md, 5.6: the states behind a gap would be wrong."""
    stage = FollowingStage(capacity=10)
    stage.beat(5)
    stage.read()
    stage.beat(30)
    stage.read()
    why = "the tap's journal is not followed any more, 20 of its events are missing: open the view again"
    assert (stage.following.trouble, stage.following.ended) == (why, True)
    assert reasons(stage.journal) == [why]


def test_another_journal_ends_the_journal() -> None:
    stage = FollowingStage()
    stage.beat(5)
    stage.read()
    stage.read(journal=Journal(2_000))
    assert stage.following.ended
    assert "it has started again" in stage.following.trouble


def test_two_failures_are_written_and_end_with_the_next_response() -> None:
    stage = FollowingStage()
    stage.write(ObservationDisturbed("of the tap"))
    stage.read()
    stage.following.take(BROKEN, NOW_MS, NOW_MS)
    assert stage.following.trouble == "the tap does not answer: connection refused"
    assert reasons(stage.journal) == ["of the tap"]
    for _ in range(3):
        stage.following.take(BROKEN, NOW_MS, NOW_MS)
    assert reasons(stage.journal)[1:] == [stage.following.trouble]
    stage.write(RecordsHeld("g", "t", 0, "m", 0, 5, 1, 9_000))
    stage.read()
    assert stage.following.trouble == ""
    assert reasons(stage.journal)[2:] == ["of the tap"]
    times = [entry.time_ms for entry in stage.journal]
    assert times == sorted(times)
    assert stage.journal[-1].event == stage.tapped[-1].event


def test_a_broker_without_the_api_is_no_tap() -> None:
    stage = FollowingStage()
    assert stage.following.offered is None
    stage.following.fail(KafkaException(KafkaError(Errors.UNSUPPORTED_VERSION, "no such API")), NOW_MS)
    assert stage.following.offered is False


def test_a_page_that_cannot_be_read_ends_the_journal() -> None:
    stage = FollowingStage()
    response = ReadJournalResponse(now_ms=NOW_MS, total=1, journal=b'{"shareq_journal": 99, "origin_ms": 0}\n')
    stage.following.take(Reply(response, Errors.NONE), NOW_MS, NOW_MS)
    assert stage.following.ended
    assert "shareq_journal=99: must be 1 or 2" in stage.following.trouble
