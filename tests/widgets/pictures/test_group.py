"""The picture of a group: its content equals the journal's events, and the drawing shows the content."""

from __future__ import annotations

from collections import Counter

import pytest

from shareq.model.events import (
    BrokerStarted,
    ConfigChanged,
    CoordinatorLoaded,
    Event,
    FaultInjected,
    GroupEpochBumped,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    RecordsAppended,
    RecordsChanged,
    SharePartitionLoaded,
    SharePartitionsInitialized,
    TargetAssignmentComputed,
    TopicCreated,
)
from shareq.model.ids import GROUP_METADATA_TOPIC, partition_for
from shareq.model.states import SETTLED, RecordEvent, RecordState
from shareq.model.waits import Wait
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.group import COMPACT_ROWS, MAX_LINES, content, draw, line_width
from shareq_widgets.pictures.group_content import GONE_MS, RATE_WINDOW_MS, GroupContent, Link
from shareq_widgets.pictures.partitions import PartitionContent
from shareq_widgets.svg import to_svg
from tests.trace.random_clusters import GROUP
from tests.trace.test_observed import ANNA, BEN, CREATED, LED, TEN, held
from tests.widgets.pictures.contents import (
    ORIGIN_MS,
    WIDTHS,
    counting,
    instant_after,
    made_up_group,
    random_instants,
)
from tests.widgets.pictures.layout import check_layout, texts

# ---- content ---------------------------------------------------------------------------------------------------------


def epochs_and_assignments(instant: Instant) -> dict[str, tuple[int, tuple[tuple[str, int], ...]]]:
    """Of each member, from its events one by one."""
    found: dict[str, tuple[int, tuple[tuple[str, int], ...]]] = {}
    for entry in instant.history.journal.select(MemberJoined, MemberLeft, MemberReconciled, group=GROUP):
        event = entry.event
        if entry.order >= instant.until:
            break
        if isinstance(event, MemberJoined):
            found[event.member_id] = (0, ())
        elif isinstance(event, MemberLeft):
            del found[event.member_id]
        elif isinstance(event, MemberReconciled):
            pairs = [(topic, number) for topic, numbers in event.assignment for number in numbers]
            found[event.member_id] = event.member_epoch, tuple(sorted(pairs))
    return found


def held_records(instant: Instant) -> Counter[str]:
    """Offset by offset, from a fold of each share-partition from its beginning."""
    found: Counter[str] = Counter()
    for topic, partition in instant.history.share_partitions(instant.until):
        alone = PartitionTimeline(instant.history.journal, GROUP, topic, partition)
        alone.refresh()
        state = alone.state(sum(entry.order < instant.until for entry in alone.entries))
        for first, end, status in state.runs:
            for _ in range(first, end):
                if status.state is RecordState.ACQUIRED and status.member_id:
                    found[status.member_id] += 1
    return found


@pytest.mark.parametrize("seed", range(10))
def test_members_at_random_moments_equal_the_events(seed: int) -> None:
    for instant in random_instants(seed):
        group, expected, holds = content(instant), epochs_and_assignments(instant), held_records(instant)
        present = [member for member in group.members if member.state != "gone"]
        assert {member.member_id: (member.member_epoch, member.assignment) for member in present} == expected
        assert [member.letter for member in group.members] == sorted(member.letter for member in group.members)
        for member in group.members:
            assert member.held == holds[member.member_id], f"seed {seed}"
            links = [link for link in group.links if link.member_id == member.member_id]
            assert sum(link.held for link in links) == member.held
            assert {link.at for link in links if link.kind == "assigned"} == set(member.assignment)


@pytest.mark.parametrize("seed", range(10))
def test_heartbeats_at_random_moments_equal_the_events(seed: int) -> None:
    for instant in random_instants(seed):
        beats = [
            entry
            for entry in instant.history.journal.select(HeartbeatReceived, group=GROUP)
            if entry.order < instant.until
        ]
        faults = [
            entry.event
            for entry in instant.history.journal.select(FaultInjected)
            if isinstance(entry.event, FaultInjected) and entry.order < instant.until
        ]
        for member in content(instant).members:
            if member.state == "gone":
                assert instant.now_ms - GONE_MS <= (member.gone_ms or 0) <= instant.now_ms
                continue
            own = [entry for entry in beats if getattr(entry.event, "member_id", "") == member.member_id]
            assert own or member.state == "not known"
            if own:
                assert (member.heartbeat_ms, member.silent_ms) == (own[-1].time_ms, instant.now_ms - own[-1].time_ms)
                fault = [event.fault for event in faults if event.member_id == member.member_id]
                silent = instant.now_ms - own[-1].time_ms > 10_000
                assert member.state == (fault[-1] if fault else "silent" if silent else "alive")


@pytest.mark.parametrize("seed", range(10))
def test_throughput_at_random_moments_equals_the_settled_records(seed: int) -> None:
    for instant in random_instants(seed):
        instant = instant._replace(until=instant.history.journal.until(instant.now_ms))
        settled = sum(
            entry.event.end - entry.event.first
            for entry in instant.history.journal.select(RecordsChanged, group=GROUP)
            if isinstance(entry.event, RecordsChanged)
            and (entry.event.cause, entry.event.why) == (SETTLED, RecordEvent.ACCEPT)
            and entry.order < instant.until
            and entry.time_ms > instant.now_ms - RATE_WINDOW_MS
        )
        group = content(instant)
        assert sum(link.rate or 0 for link in group.links) * RATE_WINDOW_MS / 1000 <= settled + 1e-6
        gone = settled - sum(member.rate or 0 for member in group.members) * RATE_WINDOW_MS / 1000
        assert gone == pytest.approx(0) or any(member.state == "gone" for member in group.members)


TOPIC: list[Event] = [
    BrokerStarted(1),
    TopicCreated("t", "id", 2),
    LeaderElected("t", 0, 1, 0),
    LeaderElected("t", 1, -1, 1),
    TopicCreated(GROUP_METADATA_TOPIC, "id2", 50),
    MemberJoined(GROUP, "a", "anna", ("t",)),
    MemberReconciled(GROUP, "a", 3, (("t", (0,)),)),
]
BEAT = HeartbeatReceived(GROUP, "a", 3, 0)
CRASHED, FROZEN = FaultInjected("anna crashed", "a", "crashed"), FaultInjected("anna is frozen", "a", "frozen")
LOADED = CoordinatorLoaded(GROUP_METADATA_TOPIC, partition_for(GROUP, 50), 0)


@pytest.mark.parametrize(
    ("events", "later_ms", "state", "left_ms"),
    [
        pytest.param([BEAT], 0, "alive", 45_000, id="now"),
        pytest.param([BEAT], 10_000, "alive", 35_000, id="twice the heartbeat interval"),
        pytest.param([BEAT], 10_001, "silent", 34_999, id="longer than that"),
        pytest.param([BEAT], 99_000, "silent", 0, id="the session is over"),
        pytest.param([BEAT, LOADED], 12_000, "silent", 33_000, id="a new coordinator starts the session again"),
        pytest.param([BEAT, BEAT._replace(error=110)], 0, "alive", 44_000, id="a refused heartbeat does not"),
        pytest.param([BEAT, CRASHED], 0, "crashed", 44_000, id="a crash"),
        pytest.param([BEAT, FROZEN], 0, "frozen", 44_000, id="a long pause"),
        pytest.param([BEAT, FROZEN, FROZEN._replace(fault="unfrozen")], 0, "alive", 43_000, id="its end"),
        pytest.param([BEAT, CRASHED._replace(member_id="b")], 0, "alive", 44_000, id="the crash of another member"),
        pytest.param([BEAT, FaultInjected("an append fails")], 0, "alive", 44_000, id="a fault of the cluster"),
        pytest.param([], 0, "not known", None, id="no heartbeat"),
        pytest.param(
            [ConfigChanged(f"group:{GROUP}", "share.session.timeout.ms", "50000"), BEAT],
            1_000,
            "alive",
            49_000,
            id="the group's session time-out",
        ),
        pytest.param(
            [ConfigChanged("broker", "group.share.heartbeat.interval.ms", "6000"), BEAT],
            11_000,
            "alive",
            34_000,
            id="the brokers' heartbeat interval",
        ),
    ],
)
def test_the_session_runs_from_the_last_heartbeat(
    events: list[Event], later_ms: int, state: str, left_ms: int | None
) -> None:
    member = content(instant_after([*TOPIC, *events], later_ms=later_ms)).members[0]
    assert (member.state, member.session_left_ms) == (state, left_ms)


def test_a_member_behind_the_group_has_a_target() -> None:
    target = TargetAssignmentComputed(GROUP, 4, (("a", (("t", (0, 1)),)),))
    group = content(instant_after([*TOPIC, BEAT, GroupEpochBumped(GROUP, 4, "joined"), target]))
    member = group.members[0]
    assert (member.member_epoch, member.group_epoch, member.behind) == (3, 4, True)
    assert (member.assignment, member.target) == ((("t", 0),), (("t", 0), ("t", 1)))
    assert [(link.at, link.kind) for link in group.links] == [(("t", 0), "assigned"), (("t", 1), "target")]
    drawing = draw(group, 480)
    assert "stroke-dasharray" in drawing.find("link a t-1")["attributes"]
    assert "stroke-dasharray" not in drawing.find("link a t-0")["attributes"]
    assert drawing.find("member a beat")["text"] == "epoch 3 of 4 · ♥ {}"
    assert draw(group, 374).find("member a beat")["text"] == "e3/4 · ♥ {}"
    assert "epoch 3 behind group epoch 4" in drawing.text
    assert "target t-0 t-1" in drawing.text


def test_a_member_holds_records_of_a_partition_that_it_is_not_assigned() -> None:
    loaded = SharePartitionLoaded(GROUP, "t", 1, 0, 0, (), 1, 0, 5, 2_000, 30_000)
    acquired = RecordsChanged(GROUP, "t", 1, RecordEvent.ACQUIRE, 0, 7, RecordState.ACQUIRED, 1, "a", ORIGIN_MS)
    events = [*TOPIC, BEAT, SharePartitionsInitialized(GROUP, "t", (0, 1)), loaded, acquired]
    group = content(instant_after(events))
    links = [(link.at, link.kind, link.held) for link in group.links]
    assert links == [(("t", 0), "assigned", 0), (("t", 1), "held", 7)]
    title = "A anna – t-1, not assigned, 0 records/s, holds 7"
    assert draw(group, 480).find("link a t-1")["title"] == title
    left = content(instant_after([*events, MemberLeft(GROUP, "a", "session expired")]))
    assert [(link.at, link.kind, link.held) for link in left.links] == [(("t", 1), "held", 7)]


def test_a_member_that_has_gone_is_shown_for_a_while() -> None:
    events = [*TOPIC, BEAT, MemberLeft(GROUP, "a", "session expired"), BEAT._replace(error=25)]
    group = content(instant_after(events))
    (member,) = group.members
    assert (member.state, member.reason, member.error) == ("gone", "session expired", "UNKNOWN_MEMBER_ID")
    assert "struck" in draw(group, 374).find("member a name")["style"]
    assert content(instant_after(events, later_ms=GONE_MS)).members == ()


def test_partitions_without_a_leader_and_not_loaded() -> None:
    first, second = content(instant_after(TOPIC)).partitions
    assert (first.leader, first.lag, first.in_flight) == (1, None, None)
    assert second.leader_words == "no leader"
    drawing = draw(content(instant_after(TOPIC)), 374)
    assert drawing.find("partition t-1")["attributes"]["stroke"] == "alarm"
    assert drawing.find("partition t-0")["attributes"]["stroke"] == "line"


def test_an_initialized_share_partition_is_not_loaded_yet() -> None:
    events = [*TOPIC, SharePartitionsInitialized(GROUP, "t", (0,)), RecordsAppended("t", 0, 0, 5)]
    one = content(instant_after(events)).partitions[0]
    assert (one.lag, one.in_flight, one.words) == (None, None, "not fetched yet")


def test_an_observed_group_shows_what_is_known() -> None:
    joined = MemberReconciled(GROUP, "a", 3, (("t", (0,)),))
    group = content(instant_after([*TEN, joined, held("b", 0, 4)], broker_id=-1))
    assert group.observed
    assert (group.session_timeout_ms, group.heartbeat_interval_ms, group.assignment_epoch) == (None, None, None)
    anna, ben = group.members
    assert (anna.state, anna.heartbeat_ms, anna.held, anna.rate) == ("not known", None, None, None)
    assert ben.held is None, "no delivery of this member is reported"
    assert group.partitions[0].in_flight is None
    for width in (340, 374, 600):
        drawing = draw(group, width)
        assert "seen from outside: heartbeats and held records not known" in drawing.text
        assert drawing.find("member a beat")["text"] == "epoch 3", "the note says once what is not known of any member"
        assert "records not known" not in texts(drawing)


def test_a_tapped_group_shows_sessions_and_records() -> None:
    """The heartbeats of a member that is connected through the tap are known, and so are its records."""
    session = ConfigChanged(f"group:{GROUP}", "share.session.timeout.ms", "45000")
    group = content(instant_after([*TEN, session, HeartbeatReceived(GROUP, "a", 3, 0)], broker_id=-1))
    anna, ben = group.members
    assert (anna.state, anna.session_left_ms, anna.held, anna.rate) == ("alive", 45_000, 0, 0)
    assert (ben.state, ben.session_left_ms, ben.held, ben.rate) == ("not known", None, None, None)


def test_an_observed_group_before_its_first_share_partition() -> None:
    assert content(instant_after([CREATED, LED, ANNA, BEN], broker_id=-1)).observed


# ---- drawing ---------------------------------------------------------------------------------------------------------

SIZES = [(0, 0), (1, 1), (3, 4), (7, 7), (8, 8), (30, 30), (200, 5), (3, 100), (200, 200)]


def made_up(members: int, partitions: int) -> GroupContent:
    return made_up_group(members, partitions) if members else content(instant_after([CREATED]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("members", "partitions"), SIZES)
def test_the_drawing_fits(members: int, partitions: int, width: int) -> None:
    drawing = draw(made_up(members, partitions), width)
    check_layout(counting(drawing))
    assert len(drawing.elements) <= 400
    assert drawing.height <= 440


@pytest.mark.parametrize(("members", "height"), [(1, 82), (2, 164), (3, 246), (5, 298), (7, 400), (200, 393)])
def test_beside_tall_neighbours_few_rows_are_farther_apart(members: int, height: int) -> None:
    drawing = draw(made_up(members, 1), 374, tall=True)
    check_layout(counting(drawing))
    assert round(drawing.height) == height


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("members", "partitions"), SIZES)
def test_clients_that_have_not_joined_have_one_row(members: int, partitions: int, width: int) -> None:
    group = made_up(members, partitions)._replace(joining=("clerk-18", "clerk-19", "clerk-20"))
    drawing = draw(group, width)
    check_layout(counting(drawing))
    assert drawing.find("joining")["title"] == "clerk-18, clerk-19, clerk-20 join when the clock moves"
    assert drawing.find("joining")["title"] in drawing.text
    assert drawing.keys("joining")[1:]


def test_names_are_whole_where_calm_heartbeats_give_way_to_them() -> None:
    group = made_up(200, 5)
    drawing = draw(group, 320)
    shown = [member for member in group.members if f"member {member.member_id} name" in drawing.keys("member")]
    assert len(shown) > 10
    for member in shown:
        calm = member.state == "alive" and not member.error
        assert (drawing.find(f"member {member.member_id} name")["text"] == member.name) or not calm


@pytest.mark.parametrize("seed", range(4))
def test_drawings_of_random_moments_fit_and_name_every_member(seed: int) -> None:
    for instant in random_instants(seed):
        group = content(instant)
        for width in WIDTHS:
            drawing = draw(group, width)
            check_layout(counting(drawing))
            for member in group.members:
                assert drawing.find(f"member {member.member_id} letter")["text"] == member.letter
                assert drawing.find(f"member {member.member_id}")["about"] == [f"member:{member.member_id}"]
            assert len(drawing.keys("link ")) == len(group.links)


@pytest.mark.parametrize(("members", "partitions"), SIZES[5:])
def test_the_noteworthy_ones_are_shown(members: int, partitions: int) -> None:
    group = made_up_group(members, partitions)
    drawing = draw(group, 480)
    shown = [member for member in group.members if f"member {member.member_id}" in drawing.keys("member ")]
    silent = [member for member in group.members if member.silent]
    assert all(member in shown for member in silent[: COMPACT_ROWS - 1]) or len(silent) >= COMPACT_ROWS
    hidden = len(group.members) - len(shown)
    assert f"and {hidden:,} more members" in drawing.text if hidden else "more members" not in drawing.text
    boxes = [key for key in drawing.keys("partition ") if key.count(" ") == 1]
    rest = len(group.partitions) - len(boxes)
    assert f"and {rest:,} more partitions" in drawing.text if rest else "more partitions" not in drawing.text


def test_bundles_carry_the_load_of_all_hidden_members() -> None:
    group = made_up_group(200, 5)
    drawing = draw(group, 760)
    shown = {key.split(" ")[1] for key in drawing.keys("member ")}
    rate = sum(link.rate or 0 for link in group.links if link.member_id not in shown and link.at == ("orders", 2))
    assert drawing.find("link more orders-2")["attributes"]["stroke-width"] == line_width(rate)


def test_the_heaviest_lines_are_drawn() -> None:
    group = made_up_group(14, 14)
    links = tuple(
        Link(member.member_id, one.at, "assigned", float(14 * place + number), 0)
        for place, member in enumerate(group.members)
        for number, one in enumerate(group.partitions)
    )
    drawing = draw(group._replace(links=links), 480)
    drawn = [f"link {link.member_id} orders-{link.at[1]}" for link in links[-MAX_LINES:]]
    assert drawing.keys("link ") == drawn
    assert drawing.find("note 0")["text"] == f"{len(links) - MAX_LINES} links without a line"


def test_wider_lines_carry_more() -> None:
    widths = [line_width(rate) for rate in (0, 0.2, 3, 40, 900, 12_000, 10_000_000)]
    assert widths == sorted(set(widths))
    assert (widths[0], widths[-1]) == (1.2, 9.0)


def test_the_time_since_a_heartbeat_counts_up_and_the_session_runs_down() -> None:
    group = made_up_group(3, 3)
    drawing, member = draw(group, 480), group.members[0]
    beat = drawing.find(f"member {member.member_id} beat")
    assert beat["countup"] == member.heartbeat_ms
    assert f"♥ {((member.silent_ms or 0) + 500) / 1000:.1f} s" in to_svg(drawing, now_ms=ORIGIN_MS + 500)
    bar, box = drawing.find("member m0 session"), drawing.find("member m0")["attributes"]
    full = (box["width"] - 14) * (member.session_left_ms or 0) / 45_000
    assert bar["attributes"]["width"] == pytest.approx(full, abs=0.01)
    assert bar["rates"]["width"] * (member.session_left_ms or 0) == pytest.approx(-full)


def test_only_silent_members_and_troubled_partitions_have_the_alarm_colour() -> None:
    group = made_up_group(30, 5)
    full = PartitionContent("orders", 9, 1, 0, 5_000, 2_000, 2_000)
    drawing = draw(group._replace(partitions=(*group.partitions, full)), 760)
    alarmed = {element["key"] for element in drawing.elements if "alarm" in element["attributes"].values()}
    silent = {f"member {member.member_id}" for member in group.members if member.silent}
    assert alarmed == {*silent, *(f"{key} session" for key in silent), "partition orders-9"}
    assert drawing.find("partition orders-9 lag")["text"].startswith("window full")


@pytest.mark.parametrize(
    ("wait", "title"),
    [
        (Wait.HELD, "; the window is full, and a member holds its first unfinished record"),
        (Wait.PAUSED, "; the group is paused: shareq.delivery.enable=false"),
        (Wait.LOG_END, ""),
        (None, ""),
    ],
)
def test_the_box_of_a_partition_says_what_it_waits_for(wait: Wait | None, title: str) -> None:
    group = made_up_group(2, 1)
    one = PartitionContent("orders", 9, 1, 0, 5_000, 2_000, 2_000, wait)
    drawing = draw(group._replace(partitions=(*group.partitions, one)), 760)
    assert drawing.find("partition orders-9")["title"] == f"orders-9: broker 1, lag 5,000 · 2,000 in flight{title}"
