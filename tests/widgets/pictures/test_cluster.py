"""The picture of a cluster: its content equals the journal's events and the cluster's metadata, and is drawn."""

from __future__ import annotations

from random import Random

import pytest

from shareq.model.events import (
    BrokerStarted,
    BrokerStopped,
    Event,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    RequestSent,
    ResponseSent,
)
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, SharePartitionKey, TopicId
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures.cluster import MAX_BROKERS, MAX_CLIENTS, ClusterContent, content, draw
from shareq_widgets.pictures.cluster_content import MAX_CHANGES, RECENT_MS, BrokerContent, ClientContent
from shareq_widgets.pictures.recent_messages import MAX_MESSAGES, MessageContent, Party
from shareq_widgets.svg import to_svg
from shareq_widgets.text_fit import text_width
from tests.trace.random_clusters import GROUP, TOPICS, random_cluster
from tests.trace.test_observed import TEN
from tests.widgets.pictures.contents import (
    ORIGIN_MS,
    WIDTHS,
    counting,
    instant_after,
    made_up_partitions,
    random_instants,
)
from tests.widgets.pictures.layout import check_layout

# ---- brokers and leaders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_brokers_and_leaders_at_random_moments_equal_the_events(seed: int) -> None:
    for instant in random_instants(seed):
        entries = instant.history.journal.entries()[: instant.until]
        states, since_ms, leaders = {}, {}, {}
        for entry in entries:
            event = entry.event
            if isinstance(event, (BrokerStarted, BrokerStopped)):
                killed = isinstance(event, BrokerStopped) and event.killed
                stopped = "killed" if killed else "stopped"
                states[event.broker_id] = "running" if isinstance(event, BrokerStarted) else stopped
                since_ms[event.broker_id] = entry.time_ms
            elif isinstance(event, LeaderElected):
                leaders[event.topic, event.partition] = event.leader, event.leader_epoch
        cluster = content(instant, instant.until)
        assert {one.broker_id: one.state for one in cluster.brokers} == states
        assert {one.broker_id: one.since_ms for one in cluster.brokers} == since_ms
        own = {at: leader for at, (leader, _) in leaders.items() if at[0] in TOPICS}
        shown = {one.at: broker.broker_id for broker in cluster.brokers for one in broker.partitions}
        shown |= {one.at: -1 for one in cluster.leaderless}
        assert shown.items() <= own.items()
        assert all(one.leader_epoch == leaders[one.at][1] for broker in cluster.brokers for one in broker.partitions)
        led = {broker.broker_id: len(broker.partitions) + broker.others for broker in cluster.brokers}
        assert led == {broker: list(own.values()).count(broker) for broker in states}


@pytest.mark.parametrize("seed", range(8))
def test_coordinators_equal_those_of_the_metadata(seed: int) -> None:
    random = random_cluster(seed)
    instant = instant_of(GroupHistory(random, GROUP))
    cluster, image = content(instant, instant.until), random.image
    coordinator = image.coordinator(GROUP_METADATA_TOPIC, GROUP)
    coordinating = [broker.broker_id for broker in cluster.brokers if broker.coordinates]
    assert coordinating == ([coordinator.broker_id] if coordinator else [])
    keeping = {at: broker.broker_id for broker in cluster.brokers for at in broker.state_of}
    for at in [one.at for broker in cluster.brokers for one in broker.partitions]:
        key = SharePartitionKey(GROUP, TopicId(image.topics[at[0]].topic_id), at[1])
        keeper = image.coordinator(SHARE_STATE_TOPIC, str(key))
        assert keeping.get(at) == (keeper.broker_id if keeper else None)


@pytest.mark.parametrize("seed", range(8))
def test_changes_since_a_moment_equal_the_events(seed: int) -> None:
    draws = Random(seed)
    for instant in random_instants(seed):
        since = draws.randrange(instant.until)
        cluster = content(instant, since, recent_ms=0)
        between = instant.history.journal.entries()[since : instant.until]
        orders = [entry.order for entry in between if isinstance(entry.event, (BrokerStarted, BrokerStopped))]
        elected = [
            entry.order
            for entry in between
            if isinstance(entry.event, LeaderElected) and entry.event.topic in TOPICS and entry.event.leader_epoch > 0
        ]
        found = {change.order: change for change in cluster.changes}
        oldest = min(found, default=0) if len(found) == MAX_CHANGES else 0
        read = {one.at for broker in cluster.brokers for one in broker.partitions} | {
            one.at for one in cluster.leaderless
        }
        for order in [*orders, *elected]:
            event = instant.history.journal[order].event
            known = not isinstance(event, LeaderElected) or (event.topic, event.partition) in read
            assert (order in found) == (known and order >= oldest)
        for order in found:
            event = instant.history.journal[order].event
            assert not isinstance(event, LeaderElected) or event.leader_epoch > 0, "a first leader is no change"
        assert content(instant, instant.until, recent_ms=0).changes == ()


def test_recent_changes_and_messages_stay_for_a_while() -> None:
    events = [*START, BrokerStopped(0, True), request(1, "Metadata", "{}"), response(1, "Metadata", "{}")]
    instant = instant_after(events, gap_ms=0, later_ms=RECENT_MS - 1)
    shown = content(instant, instant.until)
    assert [change.text for change in shown.changes][-1] == "broker 0 was killed"
    assert [message.kind for message in shown.messages] == ["request", "response"]
    later = content(instant._replace(now_ms=instant.now_ms + 1), instant.until)
    assert (later.changes, later.messages) == ((), ())


def test_a_killed_broker_and_its_elections() -> None:
    random = random_cluster(4)
    if 1 not in random.brokers_alive:
        random.start_broker(1)
    history = GroupHistory(random, GROUP)
    history.refresh()
    since = history.total
    led = [at for at, leader in leaders_of(history).items() if leader == 1]
    random.kill_broker(1)
    random.advance(1_500)
    instant = instant_of(GroupHistory(random, GROUP))
    cluster = content(instant, since)
    assert "broker 1 was killed" in [change.text for change in cluster.changes if change.alarming]
    assert set(led) <= {change.at for change in cluster.changes}
    drawing = draw(cluster, 480)
    assert "stroke-dasharray" in drawing.find("broker 1")["attributes"]
    assert "struck" in drawing.find("broker 1 name")["style"]
    assert drawing.find("broker 1 state")["style"] == "small hot"
    assert "killed 1.5 s ago" in to_svg(drawing, now_ms=instant.now_ms)
    for topic, partition in led:
        assert drawing.find(f"partition {topic}-{partition}")["attributes"]["fill"] == "band"


def leaders_of(history: GroupHistory) -> dict[tuple[str, int], int]:
    topics = history.cluster(history.total).own_topics()
    return {(topic, number): view.leader for topic, views in topics.items() for number, view in enumerate(views)}


# ---- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_messages_at_random_moments_equal_the_events(seed: int) -> None:
    draws = Random(seed)
    for instant in random_instants(seed, trace_messages=True):
        since = max(instant.until - draws.choice((5, 30, 200)), 0)
        cluster = content(instant, since, recent_ms=0)
        entries = instant.history.journal.entries()[: instant.until]
        answered = {entry.event.exchange for entry in entries if isinstance(entry.event, ResponseSent)}
        keys = []
        for entry in entries:
            event, new = entry.event, entry.order >= since and entry.time_ms >= instant.now_ms - 30_000
            if isinstance(event, RequestSent):
                broker = int(event.target.removeprefix("broker-"))
                later = [one.event for one in entries[entry.order :] if isinstance(one.event, BrokerStopped)]
                lost = broker in [stop.broker_id for stop in later]
                open_still = event.exchange not in answered and not lost and entry.time_ms > instant.now_ms - 30_000
                if new or open_still:
                    keys.append((event.exchange, "request", open_still))
            elif isinstance(event, ResponseSent) and new:
                keys.append((event.exchange, "response", False))
        assert [(one.exchange, one.kind, one.in_flight) for one in cluster.messages] == keys[-MAX_MESSAGES:]
        assert cluster.traced == any(isinstance(entry.event, RequestSent) for entry in entries)


def request(exchange: int, api: str, body: str, source: str = "clerk", target: str = "broker-1") -> RequestSent:
    return RequestSent(source, target, f"{api}Request", exchange, source, -1, body)


def response(exchange: int, api: str, body: str, error: int = 0, source: str = "broker-1") -> ResponseSent:
    return ResponseSent(source, "clerk", f"{api}Response", error, exchange, body)


START: list[Event] = [BrokerStarted(0), BrokerStarted(1), MemberJoined(GROUP, "m-1", "clerk", ("orders",))]
OF_MEMBER = '{"group_id":"g","member_id":"m-1"}'
ACCEPTS = '{"topics":[{"partitions":[{"acknowledgement_batches":["0..4: ACCEPT"]}]}]}'
GOT = '{"responses":[{"partitions":[{"acquired_records":["5..9: delivery 1"]}]}]}'
REFUSED = '{"results":[{"partitions":[{"error_code":"FENCED_STATE_EPOCH"}]}]}'


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (request(1, "ShareFetch", "{}"), "fetch"),
        (request(1, "ShareFetch", ACCEPTS), "fetch, accept 0–4"),
        (request(1, "ShareGroupHeartbeat", '{"member_epoch":0}'), "join"),
        (response(1, "ShareFetch", GOT), "got 5–9"),
        (response(1, "ShareGroupHeartbeat", "{}", error=25), "UNKNOWN_MEMBER_ID"),
        (response(1, "WriteShareGroupState", REFUSED), "FENCED_STATE_EPOCH"),
        (response(1, "Metadata", ""), "ok"),
    ],
)
def test_a_message_in_words(event: RequestSent | ResponseSent, words: str) -> None:
    sent = [] if isinstance(event, RequestSent) else [request(1, event.api.removesuffix("Response"), "{}")]
    assert content(instant_after([*START, *sent, event]), 3).messages[-1].words == words


@pytest.mark.parametrize(
    ("sent", "source"),
    [
        pytest.param(request(1, "ShareFetch", OF_MEMBER, "x"), Party("member", "m-1", "A"), id="member id"),
        pytest.param(
            request(1, "ShareFetch", OF_MEMBER.replace('"g"', '"h"'), "x"),
            Party("client", "x", "x"),
            id="another group",
        ),
        pytest.param(request(1, "Metadata", "{}"), Party("member", "m-1", "A"), id="client id of a member"),
        pytest.param(request(1, "Metadata", "{}", "admin"), Party("client", "admin", "admin"), id="another client"),
        pytest.param(
            request(1, "ReadShareGroupState", "{}", "broker-0/persister"), Party("broker", "0", "broker 0"), id="broker"
        ),
    ],
)
def test_the_sender_of_a_message(sent: RequestSent, source: Party) -> None:
    answer = ResponseSent(sent.target, sent.source, sent.api.replace("Request", "Response"), 0, 1, "{}")
    asked, answered = content(instant_after([*START, sent, answer]), 3).messages
    assert (asked.source, asked.target) == (source, Party("broker", "1", "broker 1"))
    assert (answered.source, answered.target) == (asked.target, source)


@pytest.mark.parametrize(
    ("events", "later_ms", "in_flight", "words"),
    [
        pytest.param([], 0, True, "fetch", id="waiting"),
        pytest.param([response(1, "ShareFetch", "{}")], 0, False, "fetch", id="answered"),
        pytest.param([BrokerStopped(1, True)], 0, False, "fetch, lost", id="the broker was killed"),
        pytest.param([BrokerStopped(0, True)], 0, True, "fetch", id="another broker was killed"),
        pytest.param([], 30_000, False, "fetch, lost", id="given up"),
    ],
)
def test_a_request_is_in_flight_until_its_response(
    events: list[Event], later_ms: int, in_flight: bool, words: str
) -> None:
    instant = instant_after([*START, request(1, "ShareFetch", "{}"), *events], later_ms=later_ms)
    sent = content(instant, 3).messages[0]
    assert (sent.in_flight, sent.words) == (in_flight, words)
    older = content(instant, instant.until, recent_ms=0).messages
    assert [message.exchange for message in older] == ([1] if in_flight else [])


def test_a_former_member_with_messages_looks_gone() -> None:
    left = MemberLeft(GROUP, "m-1", "left")
    cluster = content(instant_after([*START, request(1, "ShareFetch", OF_MEMBER), left]), 3)
    assert [(one.letter, one.state) for one in cluster.members] == [("A", "gone")]
    assert draw(cluster, 760).find("member m-1 name")["style"] == "faded struck"
    assert content(instant_after([*START, left]), 3).members == ()


def test_a_silent_member_is_faded() -> None:
    instant = instant_after([*START, HeartbeatReceived(GROUP, "m-1", 1, 0)], later_ms=10_000)
    badges = [
        draw(content(moment, 3), 760).find("member m-1 badge")["attributes"].get("opacity")
        for moment in (instant, instant._replace(now_ms=instant.now_ms + 1))
    ]
    assert badges == [None, 0.45]


def test_the_newest_messages_are_shown() -> None:
    many: list[Event] = [request(number, "Metadata", "{}", "admin") for number in range(1, 101)]
    messages = content(instant_after([*START, *many], gap_ms=0), 0).messages
    assert [message.exchange for message in messages] == list(range(101 - MAX_MESSAGES, 101))


def test_old_messages_are_left_out() -> None:
    instant = instant_after([*START, request(1, "Metadata", "{}"), response(1, "Metadata", "{}")], later_ms=30_001)
    cluster = content(instant, 0)
    assert (cluster.messages, cluster.traced) == ((), True)


def test_dots_come_to_rest_at_the_end_of_their_way() -> None:
    events = [*START, request(1, "ShareFetch", "{}"), response(1, "ShareFetch", GOT), request(2, "ShareFetch", "{}")]
    drawing = draw(content(instant_after(events), 3), 480)
    keys = "message 1 request", "message 1 response", "message 2 request"
    for key in keys:
        dot = drawing.find(key)
        x, y = dot["along"].split(" ")[-2:]
        assert (float(x), float(y)) == pytest.approx((dot["attributes"]["cx"], dot["attributes"]["cy"]), abs=0.06)
    asked, got, waiting = (
        drawing.find(f"message {key}")["attributes"] for key in ("1 request", "1 response", "2 request")
    )
    assert got["cx"] < waiting["cx"] < asked["cx"]
    assert (asked["fill"], got["fill"]) == ("member0", "bg")
    assert drawing.find("message 1 response")["about"] == ["message:1"]
    assert drawing.find("message 1 response")["title"] == "broker 1 → A: got 5–9"
    assert drawing.find("message 2 request")["title"] == "A → broker 1: fetch, no response yet"


def test_lines_begin_right_of_all_names() -> None:
    events = [*START, MemberJoined(GROUP, "m-2", "a-longer-name", ("orders",)), request(1, "ShareFetch", OF_MEMBER)]
    drawing = draw(content(instant_after(events), 4), 760)
    start = float(drawing.find("message 1 request")["along"][1:].split(" ")[0])
    name = drawing.find("member m-2 name")
    assert start >= name["attributes"]["x"] + text_width(name["text"])


def test_only_a_failed_state_write_has_the_alarm_colour() -> None:
    sent = [request(1, "WriteShareGroupState", "{}", "broker-0/persister"), request(2, "FindCoordinator", "{}")]
    failed = [response(1, "WriteShareGroupState", REFUSED), response(2, "FindCoordinator", "{}", error=15)]
    drawing = draw(content(instant_after([*START, *sent, *failed]), 3), 480)
    alarmed = [element["key"] for element in drawing.elements if "alarm" in element["attributes"].values()]
    assert alarmed == ["message 1 response"]


# ---- what is not known -----------------------------------------------------------------------------------------------


def test_an_observed_cluster_shows_leaders_only() -> None:
    cluster = content(instant_after(TEN, broker_id=-1), 0)
    assert [(one.broker_id, one.state, one.coordinates, one.state_of) for one in cluster.brokers] == [
        (1, "not known", False, ())
    ]
    assert [one.name for one in cluster.brokers[0].partitions] == ["t-0"]
    drawing = draw(cluster, 480)
    assert "seen from outside: which brokers run and coordinate, and messages, are not known" in drawing.text
    assert not drawing.keys("broker 1 state")


def test_without_messages_the_picture_explains_how_to_record_them() -> None:
    random = random_cluster(1)
    cluster = content(instant_of(GroupHistory(random, GROUP)), 0)
    assert not cluster.traced
    assert "no messages recorded" in draw(cluster, 374).text
    assert "trace_messages" not in draw(cluster, 374).text
    assert "Cluster(trace_messages=True)" in draw(cluster._replace(traceable=True), 374).text


# ---- drawing ---------------------------------------------------------------------------------------------------------


def made_up_cluster(brokers: int, members: int, partitions: int) -> ClusterContent:
    parts, draws = made_up_partitions(partitions), Random(brokers)
    made = tuple(
        BrokerContent(
            broker_id=number,
            state="killed" if number == 1 else "running",
            since_ms=ORIGIN_MS,
            coordinates=number == 2,
            state_of=tuple(one.at for one in parts[number::brokers]),
            partitions=tuple(one for one in parts[number::brokers] if number != 1),
            others=number,
        )
        for number in range(brokers)
    )
    lost = tuple(one._replace(leader=-1) for one in parts[1::brokers]) if brokers > 1 else ()
    crew = tuple(ClientContent(f"m{n}", chr(65 + n % 26), f"worker-{n}", f"member{n % 8}") for n in range(members))
    messages = []
    for number in range(MAX_MESSAGES):
        member = Party("member", f"m{draws.randrange(members)}", "A")
        broker = Party("broker", str(draws.randrange(brokers)), "broker")
        kind = draws.choice(("request", "response"))
        source, target = (member, broker) if kind == "request" else (broker, member)
        messages.append(MessageContent(number, "request", source, target, "ShareFetch", "fetch", 0))
    messages.append(MessageContent(99, "request", Party("broker", "0", ""), Party("broker", "0", ""), "Read", "", 0))
    messages.append(MessageContent(98, "request", Party("client", "shareq", "shareq"), broker, "Produce", "", 0))
    return ClusterContent("payments", False, True, made, lost, crew, (), tuple(messages))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("brokers", "members", "partitions"), [(1, 1, 1), (3, 3, 5), (3, 30, 100), (9, 200, 30), (100, 3, 100)]
)
def test_the_drawing_fits(brokers: int, members: int, partitions: int, width: int) -> None:
    cluster = made_up_cluster(brokers, members, partitions)
    drawing = draw(cluster, width)
    check_layout(counting(drawing))
    assert len(drawing.elements) <= 400
    boxes = [key for key in drawing.keys("broker ") if key.count(" ") == 1]
    assert len(boxes) == (brokers if brokers <= MAX_BROKERS else MAX_BROKERS - 1)
    assert ("broker 1" in boxes) == (brokers > 1), "a killed broker is shown"
    assert len(drawing.keys("member ")) <= 3 * MAX_CLIENTS
    assert_chips_are_in_boxes(drawing, cluster)


def assert_chips_are_in_boxes(drawing: Drawing, cluster: ClusterContent) -> None:
    for broker in cluster.brokers:
        drawn = set(drawing.keys())
        shown = [f"partition {one.name}" for one in broker.partitions if f"partition {one.name}" in drawn]
        for key in shown:
            outer, inner = drawing.find(f"broker {broker.broker_id}")["attributes"], drawing.find(key)["attributes"]
            assert outer["x"] <= inner["x"] <= inner["x"] + inner["width"] <= outer["x"] + outer["width"]
            assert outer["y"] <= inner["y"] <= inner["y"] + inner["height"] <= outer["y"] + outer["height"]
        if f"broker {broker.broker_id}" in drawn and len(shown) < len(broker.partitions):
            more = drawing.find(f"broker {broker.broker_id} more")["text"]
            assert more == f"and {len(broker.partitions) - len(shown)} more"


@pytest.mark.parametrize("seed", range(4))
def test_drawings_of_random_moments_fit(seed: int) -> None:
    for instant in random_instants(seed, trace_messages=True):
        cluster = content(instant, max(instant.until - 100, 0))
        for width in WIDTHS:
            drawing = draw(cluster, width)
            check_layout(counting(drawing))
            assert {f"broker {one.broker_id}" for one in cluster.brokers} <= set(drawing.keys("broker "))
            dots = [key for key in drawing.keys("message ") if not key.endswith("words")]
            assert len(dots) == len(cluster.messages)
