"""The messages picture: its content compared with the journal, its drawing with its content."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from traitlets import TraitError

from shareq import Cluster, KafkaException, ShareConsumer
from shareq.model import events as e
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER
from shareq.trace import Journal
from shareq.trace.analysis.caused_events import caused_events
from shareq.trace.analysis.exchanges import exchanges, topic_names
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets import views
from shareq_widgets.drawing import Drawing
from shareq_widgets.group_picture import GroupPicture
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures import messages
from shareq_widgets.pictures.messages_columns import columns
from shareq_widgets.pictures.messages_content import MessagesContent
from shareq_widgets.pictures.messages_filter import KINDS, OTHERS, SelectedParty, draw_buttons, kind_of
from shareq_widgets.selection import broker, member, message
from tests.budgets import cases
from tests.trace.histories import GROUP as OBSERVED
from tests.trace.test_group_history import busy_cluster
from tests.trace.test_observed import TEN, held, observed
from tests.trace.traced_cluster import GROUP, traced_cluster
from tests.widgets.pictures.layout import WIDTHS, check_layout, extent, texts

HEAD_PX = 7 * 1.4
"""The height of an arrowhead: 7 widths of the line."""


@pytest.fixture(scope="module")
def run() -> Instant:
    """The last moment of a run on a network with latency."""
    return instant_of(GroupHistory(traced_cluster(3, latency_ms=5), GROUP))


def moment(run: Instant, until: int, later_ms: int = 0) -> Instant:
    last_ms = run.history.journal.entries()[until - 1].time_ms
    return run._replace(until=until, now_ms=last_ms + later_ms)


def test_the_content_at_random_moments_is_that_of_the_journal(run: Instant, seed: int) -> None:
    draw, journal = Random(seed), run.history.journal
    everything, names = exchanges(journal), topic_names(journal)
    caused = caused_events(journal.entries(), everything, names)
    for _ in range(cases(40, 1_000)):
        until, span_ms = draw.randrange(1, journal.total + 1), draw.choice((20, 300, 5_000))
        at = moment(run, until, draw.choice((0, 7)))
        most = draw.choice((3, messages.MOST))
        shown = messages.content(at, span_ms, most=most)
        expected = [
            one for one in everything
            if one.order < until and not (one.answered_order and one.answered_order < until
                                          and (one.answered_ms or 0) < at.now_ms - span_ms)
        ]  # fmt: skip
        assert [one.number for one in shown.exchanges] == [one.number for one in expected[-most:]]
        assert shown.earlier == max(len(expected) - most, 0)
        for found, one in zip(shown.exchanges, expected[-most:], strict=True):
            answered = one.answered_order is not None and one.answered_order < until
            assert found.sent == (one.order, one.time_ms)
            assert found.answered == ((one.answered_order, one.answered_ms) if answered else None)
            before = [entry.order for entry in caused[one.order] if entry.order < until]
            assert found.last_event == (before[-1] if before else None)


def test_filters_and_participants(run: Instant) -> None:
    killed = next(entry.order for entry in run.history.journal.entries() if isinstance(entry.event, e.BrokerStopped))
    both = messages.content(moment(run, killed + 1), 60_000)
    kinds = [one.kind for one in both.participants]
    assert kinds == sorted(kinds, key=("member", "client", "broker", "coordinator").index)
    assert [one.name for one in both.participants if one.kind == "broker"] == ["broker 0", "broker 1", "broker 2"]
    assert [one.present for one in both.participants if one.kind == "broker"] == [True, True, False]
    only = messages.content(run, 60_000, client="clerk-1", apis=["ShareFetch"])
    assert {one.api for one in only.exchanges} == {"ShareFetch"}
    (clerk,) = {one.source for one in only.exchanges}
    (one,) = [one for one in only.participants if one.key == clerk]
    assert (one.kind, one.name, one.letter, one.colour) == ("member", "clerk-1", "A", "member0")
    assert one.about == member(clerk.removeprefix("member:"))
    writes = messages.content(run, 60_000, apis=["WriteShareGroupState"]).exchanges
    assert {(one.source.partition(":")[0], one.target.partition(":")[0]) for one in writes} == {
        ("broker", "coordinator")
    }


def test_the_selected_exchange_has_its_messages_and_events(run: Instant) -> None:
    journal = run.history.journal
    one = next(x for x in exchanges(journal, client="clerk-1") if x.api == "ShareAcknowledge" and "topics" in x.request)
    shown = messages.content(run, selected=one.number)
    detail = shown.detail
    assert detail is not None
    assert detail.title == f"ShareAcknowledge, clerk-1 to {one.broker}, {one.duration_ms} ms"
    assert "group_id g" in detail.request
    assert any("acknowledgement_batches" in line for line in detail.request)
    assert any("is under way" in line for line in detail.events)
    assert any("is durable" in line for line in detail.events)
    for width in (374, 1200):
        drawn = texts(messages.draw(shown, width), "detail")
        assert {"request", "response", "events that it caused"} <= set(drawn)
    early = messages.content(moment(run, one.order + 1), selected=one.number).detail
    assert early is not None
    assert (early.response, early.events) == (None, ())
    assert messages.content(moment(run, one.order), selected=one.number).detail is None


def test_the_drawing_has_each_message_in_its_order(run: Instant, seed: int) -> None:
    draw = Random(seed)
    for width in WIDTHS:
        shown = messages.content(moment(run, draw.randrange(400, run.until)), 400, most=draw.choice((5, 40)))
        drawing = messages.draw(shown, width)
        check_layout(drawing)
        arrows = {each["key"]: each["about"] for each in drawing.elements if each["key"].startswith("arrow")}
        for one in shown.exchanges:
            mine = [key.split()[2] for key, about in arrows.items() if message(one.number) in about]
            assert mine == ["request", "response"][: 2 if one.answered else 1]
        alone = sorted(
            [(one.sent[0], f"arrow {one.number} request") for one in shown.exchanges]
            + [(one.answered[0], f"arrow {one.number} response") for one in shown.exchanges if one.answered]
        )
        tops = [extent(drawing.find(key)).top for _, key in alone if len(arrows.get(key, ())) == 1]
        assert tops == sorted(set(tops))
        for one in shown.exchanges:
            open_line = drawing.keys(f"open {one.number}")
            assert bool(open_line) == (one.answered is None and not one.lost)
            if f"arrow {one.number} request" not in arrows:
                continue  # the arrow of an equal exchange stands for it
            assert message(one.number) in drawing.find(f"words {one.number} request")["about"]
            if one.last_event is not None:
                work, request = (
                    extent(drawing.find(f"work {one.number}")),
                    extent(drawing.find(f"arrow {one.number} request")),
                )
                assert work.top >= request.top
                assert work.left < drawing.find(f"{_column(drawing, one.target)} line")["attributes"]["x1"] < work.right
        earlier = [
            text for text in texts(drawing, "earlier") if text.startswith(f"and {shown.earlier} earlier request")
        ]
        assert bool(earlier) == (shown.earlier > 0)


def test_the_whole_line_of_a_message_takes_a_click(run: Instant) -> None:
    """On a screen only: a stored picture has no places for clicks, and no hint."""
    shown = messages.content(run, 400)
    for width in WIDTHS:
        drawing = messages.draw(shown, width, buttons=((), None))
        check_layout(drawing)
        targets = [extent(drawing.find(key)) for key in drawing.keys("target")]
        assert len(targets) == len(drawing.keys("arrow"))
        assert all(one.bottom <= two.top for one, two in pairwise(targets))
        for key in drawing.keys("arrow"):
            target = drawing.find(key.replace("arrow", "target"))
            assert target["about"] == drawing.find(key)["about"]
            assert extent(target).top <= extent(drawing.find(key)).top <= extent(target).bottom
            assert extent(target).width > 0.7 * width
        assert texts(drawing, "hint") == [messages.HINT]
    chosen = messages.content(run, 400, selected=shown.exchanges[-1].number)
    assert texts(messages.draw(chosen, 374, buttons=((), None)), "hint") == []
    still = messages.draw(shown, 374)
    assert (still.keys("target"), still.keys("hint")) == ([], [])


def test_a_cluster_without_a_trace_has_no_messages() -> None:
    """The advice is only for those who can follow it."""
    found = at_end(busy_cluster())
    assert messages.draw(found, 374).text == "The journal has no messages."
    drawing = messages.draw(found._replace(traceable=True), 374)
    assert drawing.text == "The journal has no messages: a cluster with trace_messages=True records them."
    check_layout(drawing)


def test_only_the_view_of_an_open_cluster_advises_to_trace_messages(tmp_path: Path) -> None:
    with Cluster(brokers=1) as cluster:
        with ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP}) as consumer:
            cluster.create_topic("jobs")
            consumer.subscribe(["jobs"])
            consumer.poll(1)
        cluster.journal.to_jsonl(tmp_path / "run.jsonl")
        assert [
            ["trace_messages" in repr(show(source, group=GROUP)) for show in (views.messages, views.cluster)]
            for source in (cluster, Journal.from_jsonl(tmp_path / "run.jsonl"))
        ] == [[True, True], [False, False]]
    assert "no messages" in repr(views.messages(cluster, group=GROUP))
    assert "trace_messages" not in repr(views.messages(cluster, group=GROUP))


def test_a_group_that_is_seen_from_outside_has_only_advice_that_its_reader_can_follow() -> None:
    content = messages.content(instant_of(GroupHistory(observed([*TEN, held("b", 2, 4)]).journal, OBSERVED)))
    for width in WIDTHS:
        drawing = messages.draw(content, width)
        check_layout(drawing)
        assert drawing.text == "No messages are recorded: shareq tap --trace-messages records them."


def at_end(cluster: Cluster) -> MessagesContent:
    return messages.content(instant_of(GroupHistory(cluster.journal, GROUP)))


def _column(drawing: Drawing, target: str) -> str:
    keys = [key.removesuffix(" line") for key in drawing.keys("") if key.endswith(" line")]
    return target if target in keys else f"other {target.partition(':')[0]}s"


def written(*history: tuple[int, e.Event]) -> Instant:
    journal = Journal()
    for time_ms, event in history:
        journal.record(time_ms, -1, event)
    return instant_of(GroupHistory(journal, GROUP))


def sent(number: int, api: str = "Metadata", broker_id: int = 0) -> e.RequestSent:
    return e.RequestSent("app", f"broker-{broker_id}", f"{api}Request", number, "app")


def test_errors_and_lost_requests_have_the_alarm_colour() -> None:
    body = '{"responses":[{"partitions":[{"partition_index":0,"error_code":"NOT_LEADER_OR_FOLLOWER"}]}]}'
    shown = messages.content(written(
        (0, e.BrokerStarted(0)), (0, e.BrokerStarted(1)), (1, sent(1)), (1, sent(2, broker_id=1)), (2, sent(3)),
        (3, e.ResponseSent("broker-0", "app", "MetadataResponse", 0, 1, body)), (4, e.BrokerStopped(1, True)),
    ))  # fmt: skip
    assert [(one.errors, one.lost) for one in shown.exchanges] == [
        (("NOT_LEADER_OR_FOLLOWER",), False), ((), True), ((), False),
    ]  # fmt: skip
    drawing = messages.draw(shown, 480)
    hot = [key for key in drawing.keys("arrow") if drawing.find(key)["attributes"]["stroke"] == "alarm"]
    assert hot == ["arrow 2 request", "arrow 1 response"]
    heads = [key for key in drawing.keys("arrow") if drawing.find(key)["attributes"]["marker-end"] == "hot-arrow"]
    assert heads == hot
    assert texts(drawing, "words 1 response") == ["NOT_LEADER_OR_FOLLOWER"]
    assert texts(drawing, "words 2 request") == ["metadata: lost, the broker stopped"]
    assert drawing.keys("open") == ["open 3"]
    assert drawing.find("broker:1 line")["about"] == [broker(1)]


@pytest.mark.parametrize(("history", "present"), [
    pytest.param([], True, id="a tap's journal has no starts of brokers"),
    pytest.param([e.BrokerStarted(0)], True, id="started"),
    pytest.param([e.BrokerStarted(0), e.BrokerStopped(0, True)], False, id="stopped"),
])  # fmt: skip
def test_a_broker_is_present_unless_it_is_known_to_be_stopped(history: list[e.Event], present: bool) -> None:
    shown = messages.content(written(*[(0, event) for event in history], (1, sent(1))))
    assert [one.present for one in shown.participants if one.kind == "broker"] == [present]


def test_messages_of_one_instant_are_apart_and_pauses_are_seen() -> None:
    drawing = messages.draw(messages.content(written((0, sent(1)), (0, sent(2)), (900, sent(3)), (900, sent(4)))), 480)
    tops = [extent(drawing.find(f"arrow {number} request")).top for number in (1, 2, 3, 4)]
    assert tops[1] - tops[0] == tops[3] - tops[2] < tops[2] - tops[1]
    assert texts(drawing, "time") == ["0:00.000", "0:00.900"]


@pytest.mark.parametrize("width", WIDTHS)
def test_words_stay_beside_their_arrow(run: Instant, width: int) -> None:
    """Words beyond it would cross lifelines that have no part in the message. Those of a short arrow may pass its
    tail: what would fit beside it says nothing."""
    drawing = messages.draw(messages.content(run, 60_000), width)
    beside = 0
    for key in drawing.keys("words "):
        words, path = extent(drawing.find(key)), drawing.find(key.replace("words", "arrow", 1))["attributes"]["d"]
        if "L" not in path:
            continue
        x1, x2 = (float(end.split()[0]) for end in path[1:].split("L"))
        assert words.right <= x2 if x1 < x2 else words.left >= x2, (key, words, path)
        if "hot" in drawing.find(key)["style"]:
            continue
        if abs(x2 - x1) > messages.SHORT:
            assert words.left >= x1 if x1 < x2 else words.right <= x1, (key, words, path)
            beside += 1
        else:
            assert words.right - words.left <= messages.SHORT + 1, (key, words, path)
    assert beside or width < 400


@pytest.mark.parametrize("width", WIDTHS)
def test_words_are_clear_of_the_arrowhead_above_them(run: Instant, width: int) -> None:
    """The words of a short arrow may pass its tail, below the head of the response before."""
    drawing = messages.draw(messages.content(run, 60_000), width)
    arrows = [drawing.find(key) for key in drawing.keys("arrow ")]
    for above, below in pairwise(arrows):
        words = extent(drawing.find(below["key"].replace("arrow", "words", 1)))
        assert words.top >= extent(above).bottom + HEAD_PX / 2, (above, below)


@pytest.mark.parametrize("width", [480, 760, 1_400, 2_200])
def test_words_of_a_state_write_have_room_between_their_columns(width: int) -> None:
    """However many clients there are: their arrows pass several columns, that of a state write passes one."""
    history: list[tuple[int, e.Event]] = [(0, e.BrokerStarted(0)), (0, e.BrokerStarted(1))]
    for number in range(30):
        request = sent(number, broker_id=0)._replace(source=f"app-{number:02}", client_id=f"app-{number:02}")
        history.append((number, request))
    write = sent(0, "WriteShareGroupState", broker_id=1)._replace(source="broker-0", client_id="broker-0")
    shown = messages.content(written(*history, (40, write)))
    found = columns(shown, width)
    xs = sorted({one.x for one in found.values()})
    assert found["coordinator:1"].x == xs[-1]
    assert xs[-1] - xs[-2] > messages.SHORT
    assert xs[-1] <= width
    assert min(b - a for a, b in pairwise(xs)) >= messages.COLUMN


def test_many_participants_share_columns() -> None:
    history: list[tuple[int, e.Event]] = [(0, e.BrokerStarted(0))]
    for number in range(30):
        request = sent(number)._replace(source=f"app-{number:02}", client_id=f"app-{number:02}")
        history.append((number, request))
    shown = messages.content(written(*history))
    assert len(shown.participants) == 31
    for width in WIDTHS:
        drawing = messages.draw(shown, width)
        check_layout(drawing, may_touch=("",))
        lines = [key for key in drawing.keys("") if key.endswith(" line")]
        assert len(lines) <= width / messages.COLUMN
        (more,) = [text for text in texts(drawing) if text.endswith(" more")]
        assert int(more.split()[0]) + len(lines) - 1 == 31
        assert "client:app-29 line" in lines


def test_a_message_of_a_shared_column_has_its_member_s_letter() -> None:
    history: list[tuple[int, e.Event]] = [(0, e.BrokerStarted(0))]
    for number in range(9):
        history.append((0, e.MemberJoined(GROUP, f"m-{number}", f"clerk-{number}", ("orders",))))
        body = f'{{"group_id":"{GROUP}","member_id":"m-{number}"}}'
        request = sent(number, "ShareFetch")._replace(source=f"clerk-{number}", client_id=f"clerk-{number}", body=body)
        history.append((number, request))
    drawing = messages.draw(messages.content(written(*history)), 320)
    heads = [text for text in texts(drawing, "member:") if len(text) == 1]
    assert heads == ["H", "I"]
    assert texts(drawing, "words") == [*(f"{letter}: fetch" for letter in "ABCDEFG"), *["fetch"] * 2]


def heartbeats(members: int, *, failing: int) -> messages.MessagesContent:
    """A heartbeat of each member at one instant; that of one fails."""
    history: list[tuple[int, e.Event]] = [(0, e.BrokerStarted(0))]
    for number in range(members):
        history.append((0, e.MemberJoined(GROUP, f"m-{number}", f"clerk-{number}", ("orders",))))
        body = f'{{"group_id":"{GROUP}","member_id":"m-{number}"}}'
        request = sent(number, "ShareGroupHeartbeat")._replace(source=f"clerk-{number}", client_id=f"clerk-{number}")
        error = '"COORDINATOR_LOAD_IN_PROGRESS"' if number == failing else "0"
        answer = f'{{"error_code":{error},"member_epoch":3}}'
        response = "ShareGroupHeartbeatResponse", 0, number, answer
        history += [(0, request._replace(body=body)), (0, e.ResponseSent("broker-0", f"clerk-{number}", *response))]
    return messages.content(written(*history))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("chosen", ["", member("m-3")])
def test_equal_messages_of_members_without_a_lifeline_are_one(width: int, chosen: str) -> None:
    """A member that is selected, or has an error, has a lifeline; the others are counted."""
    shown = heartbeats(40, failing=7)
    drawing = messages.draw(shown, width, chosen)
    check_layout(drawing)
    assert bool(drawing.keys("member:m-3 line")) == bool(chosen)
    assert drawing.keys("member:m-7 line")
    assert len(drawing.keys("member:")) <= 3 * messages.LIFELINES
    folds = [text for text in texts(drawing, "words") if "× heartbeat" in text]
    folded = sum(int(text.split()[0]) for text in folds)
    assert folded + sum(text == "heartbeat" for text in texts(drawing, "words")) == 40
    assert f"{folded} more" in texts(drawing, "other members")
    (key, *_) = [key for key in drawing.keys("arrow") if "× heartbeat" in drawing.find(key)["title"]]
    assert {subject.partition(":")[0] for subject in drawing.find(key)["about"]} == {"message"}
    assert sum(len(drawing.find(key)["about"]) for key in drawing.keys("arrow")) == 80


def test_a_selected_message_has_a_row_of_its_own() -> None:
    shown = heartbeats(40, failing=7)
    before = texts(messages.draw(shown, 480), "words")
    first = shown.exchanges[0]
    detail = messages.Detail(first.number, first.label, (), (), ())
    after = texts(messages.draw(shown._replace(detail=detail), 480), "words")
    assert "A: heartbeat" in after
    assert "A: heartbeat" not in before


@pytest.mark.parametrize(("times_ms", "shown", "span_ms"), [
    pytest.param([29_900] * 20, 20, 1_000, id="enough in a second"),
    pytest.param([25_000, 25_500, 26_000, 27_000, 28_000, 29_900], 6, 5_000, id="enough in five seconds"),
    pytest.param([26_000] * 20, 12, 5_000, id="not all of a longer span"),
    pytest.param([1, 10_000, 29_900], 3, 30_000, id="few in the longest span"),
    pytest.param([], 0, 30_000, id="none"),
])  # fmt: skip
def test_a_quiet_group_is_shown_over_a_longer_time(times_ms: list[int], shown: int, span_ms: int) -> None:
    history: list[tuple[int, e.Event]] = [(0, e.BrokerStarted(0))]
    for number, at in enumerate(times_ms):
        history += [(at, sent(number)), (at, e.ResponseSent("broker-0", "app", "MetadataResponse", 0, number, "{}"))]
    run = written(*history)
    found = messages.recent(run._replace(now_ms=run.origin_ms + 30_000))
    counted = len(found.exchanges), found.earlier, found.now_ms - found.from_ms
    assert counted == (shown, len(times_ms) - shown, span_ms)


@pytest.mark.parametrize(("trace", "words"), [
    pytest.param(False, "No client has sent a message so far.", id="no client"),
    pytest.param(True, "No messages in the last 1 s.", id="none in the span"),
])  # fmt: skip
def test_a_picture_without_messages_gives_the_reason(trace: bool, words: str) -> None:
    with Cluster(trace_messages=trace) as cluster:
        run = instant_of(GroupHistory(traced_cluster(1, rounds=1) if trace else cluster, GROUP))
        drawing = messages.draw(messages.content(run._replace(now_ms=run.now_ms + 600_000)), 374)
    assert drawing.text == words
    assert " ".join(texts(drawing)) == words
    check_layout(drawing)


@pytest.mark.parametrize(("arguments", "words"), [
    pytest.param({"most": 0}, "most=0: must be 1..40", id="no exchange"),
    pytest.param({"most": 41}, "most=41: must be 1..40", id="too many"),
    pytest.param({"span_ms": 0}, "span_ms=0: must be 1 or more", id="no span"),
])  # fmt: skip
def test_bad_arguments_are_refused(run: Instant, arguments: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        messages.content(run, **arguments)  # type: ignore[arg-type]


# ---- buttons that filter ---------------------------------------------------------------------------------------------


def test_a_button_hides_and_shows_the_requests_of_a_kind() -> None:
    view = views.messages(traced_cluster(3, latency_ms=5), group=GROUP)
    kinds = {kind_of(api) for api in shown_apis(view)}
    assert {"fetches", "heartbeats"} <= kinds
    assert buttons_of(view) == dict.fromkeys(KINDS, True)
    press(view, "fetches")
    assert view.without == ("fetches",)
    assert buttons_of(view) == dict.fromkeys(KINDS, True) | {"fetches": False}
    assert {kind_of(api) for api in shown_apis(view)} >= {"heartbeats"}
    assert "fetches" not in {kind_of(api) for api in shown_apis(view)}
    press(view, "fetches")
    assert {kind_of(api) for api in shown_apis(view)} == kinds


def test_a_button_shows_only_the_messages_of_the_selected_member_or_broker() -> None:
    cluster = traced_cluster(3, latency_ms=5)
    view = views.messages(cluster, group=GROUP)
    assert OTHERS not in buttons_of(view)
    one = next(one for one in messages.content(instant(view), 60_000).participants if one.kind == "member")
    view.select(one.about)
    assert buttons_of(view)[OTHERS] is False
    view.without = (OTHERS,)
    assert buttons_of(view)[OTHERS] is True
    assert titles(view)
    assert all(one.name in title for title in titles(view))
    view.select(broker(0))
    ends = [{end.strip() for end in title.split(": ")[0].split("  ")[1].split(" to ")} for title in titles(view)]
    assert ends
    assert all(found & {"broker 0", "share coordinator 0"} for found in ends)
    assert {one for found in ends for one in found} > {"broker 0"}


def test_a_picture_without_front_end_has_no_buttons() -> None:
    view = views.messages(traced_cluster(3), group=GROUP)
    assert "heartbeats" in view.drawing["elements"]["button heartbeats"]["part"]
    assert "show ShareGroupHeartbeat" not in view.to_svg()


def test_parts_that_a_picture_does_not_have_are_refused() -> None:
    cluster = traced_cluster(3)
    for view in (views.messages(cluster, group=GROUP), views.locks(cluster, group=GROUP)):
        with pytest.raises(TraitError, match="without must have parts of the picture, not 'planets'"):
            view.without = ("planets",)


@pytest.mark.parametrize("width", WIDTHS)
def test_buttons_have_room(width: int) -> None:
    drawing = Drawing(width, text="buttons")
    drawing.height = draw_buttons(drawing, {"heartbeats"}, SelectedParty("clerk-1"))
    check_layout(drawing)
    drawn = messages.draw(messages.content(instant(views.messages(traced_cluster(3), group=GROUP)), 30_000), width, "",
                          (frozenset(), SelectedParty("clerk-1")))  # fmt: skip
    check_layout(drawn)
    plain = messages.draw(messages.content(instant(views.messages(traced_cluster(3), group=GROUP)), 30_000), width)
    assert drawn.height - plain.height == drawing.height + messages.HINT_HEIGHT


def buttons_of(view: GroupPicture) -> dict[str, bool]:
    return {e["part"]: e["pressed"] for e in view.drawing["elements"].values() if "pressed" in e}


def press(view: GroupPicture, part: str) -> None:
    view._on_message(view, {"do": "part", "value": part}, [])


def instant(view: GroupPicture) -> Instant:
    return view.instant


def titles(view: GroupPicture) -> list[str]:
    """The tooltips of the arrows: time, sender, receiver, API and words."""
    return [e["title"] for key, e in view.drawing["elements"].items() if key.startswith("arrow ")]


def shown_apis(view: GroupPicture) -> set[str]:
    return {title.split(": ", 1)[1].split(",")[0].removesuffix(" response") for title in titles(view)}


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("traced", [True, False])
def test_refused_clients_and_denials_are_shown_with_a_mark(traced: bool) -> None:
    """Also while messages are not traced: a refused client sends none."""
    config = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:root"}
    with Cluster(brokers=1, config=config, trace_messages=traced) as cluster:
        cluster.create_topic("orders")
        alice = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers_as("alice"), "group.id": GROUP})
        alice.subscribe(["orders"])
        with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
            alice.poll(10)
        cluster.record(e.AuthenticationFailed(0, "10.0.0.7", "PLAIN", "bob", "Invalid username or password"))
        journal = cluster.journal
    at = instant_of(GroupHistory(journal, GROUP))
    events = [
        entry for entry in journal.entries() if isinstance(entry.event, e.AuthenticationFailed | e.AuthorizationDenied)
    ]
    shown = messages.recent(at, since_ms=journal.origin_ms)
    assert [one.order for one in shown.refused] == [entry.order for entry in events][-messages.MOST_REFUSED :]
    assert shown.refused[-1].text == "broker 0 refused 'bob' at 10.0.0.7, Invalid username or password"
    assert "User:alice from 127.0.0.1 was denied DESCRIBE on TOPIC orders" in shown.refused[-2].text
    assert shown.traced is traced
    for width in WIDTHS:
        drawing = messages.draw(shown, width)
        check_layout(drawing)
        marks = {each["key"] for each in drawing.elements if each["key"].endswith("mark")}
        assert marks == {f"refused {one.order} mark" for one in shown.refused}
    assert "refused: broker 0 refused 'bob'" in drawing.text
    before = messages.content(moment(at, events[0].order), 60_000)
    assert before.refused == ()
