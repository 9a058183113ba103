"""Instants of random clusters, and made-up contents of any size, for the pictures' tests."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from shareq.model.events import Event
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.views.member_names import letter
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures.group_content import GroupContent, Link, LinkKind, MemberContent, MemberState
from shareq_widgets.pictures.partitions import PartitionContent
from tests.budgets import cases
from tests.trace.random_clusters import GROUP, random_cluster

ORIGIN_MS = 1_767_225_600_000
WIDTHS = (320, 374, 480, 760, 1_200)


def random_instants(seed: int, *, trace_messages: bool = False) -> Iterator[Instant]:
    """Moments of a random cluster: some after an entry, some up to 20 s later."""
    cluster, draw = random_cluster(seed, trace_messages=trace_messages), Random(seed)
    history = GroupHistory(cluster, GROUP)
    last = instant_of(history)
    for _ in range(cases(12, 125)):
        until = draw.randrange(1, history.total + 1)
        at_ms = cluster.journal[until - 1].time_ms
        yield last._replace(until=until, now_ms=at_ms + draw.choice((0, 0, draw.randrange(20_000))))


def instant_after(events: list[Event], *, gap_ms: int = 1_000, later_ms: int = 0, broker_id: int = 0) -> Instant:
    """The moment after these events, which are `gap_ms` apart."""
    journal = Journal(ORIGIN_MS)
    for place, event in enumerate(events):
        journal.record(ORIGIN_MS + gap_ms * place, broker_id, event)
    return instant_of(GroupHistory(journal, GROUP), now_ms=ORIGIN_MS + gap_ms * (len(events) - 1) + later_ms)


def counting(drawing: Drawing) -> Drawing:
    """The drawing with a usual time in each text that counts up, as a person sees it."""
    shown = Drawing(drawing.width, drawing.height, text=drawing.text)
    for element in drawing.elements:
        text = element.get("text", "")
        shown.extend([{**element, "text": text.replace("{}", "00.0 s")} if "countup" in element else element])
    return shown


STATES: tuple[MemberState, ...] = ("alive", "silent", "crashed", "frozen", "gone")


def made_up_group(members: int, partitions: int, seed: int = 1) -> GroupContent:
    """A group with members in all states, and loads of all sizes."""
    draw, made, links = Random(seed), [], []
    for place in range(members):
        state: MemberState = draw.choices(STATES, (40, 2, 1, 1, 2))[0]
        silent_ms = draw.randrange(5_000) if state == "alive" else draw.randrange(11_000, 40_000)
        rate, member_id = draw.choice((0.0, 3.4, 40.0, 900.0, 12_000.0)), f"m{place}"
        parts = sorted(draw.sample(range(partitions), max(1, partitions // members)))
        member = MemberContent(
            member_id, letter(place), f"worker-{place}", f"member{place % 8}", "alive", held=place, rate=rate
        )
        if state == "gone":
            member = member._replace(state="gone", gone_ms=ORIGIN_MS - silent_ms, reason="session expired")
        else:
            member = member._replace(
                state=state,
                member_epoch=41 - (place % 9 == 8),
                group_epoch=41,
                assignment=tuple(("orders", number) for number in parts),
                heartbeat_ms=ORIGIN_MS - silent_ms,
                silent_ms=silent_ms,
                session_left_ms=45_000 - silent_ms,
            )
        made.append(member)
        kind: LinkKind = "held" if state == "gone" else "assigned"
        links += [Link(member_id, ("orders", number), kind, rate / len(parts), 3) for number in parts]
    return GroupContent(
        "payments", "Stable", 41, 41, 45_000, 5_000, False, tuple(made), made_up_partitions(partitions), tuple(links)
    )


def made_up_partitions(count: int) -> tuple[PartitionContent, ...]:
    draw = Random(count)
    return tuple(
        PartitionContent("orders", n, draw.choice((0, 1, 2)), 4, draw.randrange(100_000), draw.randrange(2_001), 2_000)
        for n in range(count)
    )
