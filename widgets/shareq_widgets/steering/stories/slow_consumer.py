"""The story of a slow consumer, and of a frozen one that continues as a zombie."""

from __future__ import annotations

from shareq.model.errors import Errors
from shareq.model.events import AcknowledgementRefused, FaultInjected, MemberJoined, MemberLeft
from shareq.model.states import RecordEvent
from shareq_widgets.steering.stories.evidence import GROUP, Evidence, count, seconds, span, times
from shareq_widgets.steering.stories.story import BEGINNING, Preset, Step


def _locks_lost(e: Evidence) -> str:
    (expired,) = e.timeouts()
    (again,) = e.acquisitions("B")
    return (
        f"At {seconds(expired.time_ms)} the locks of records {span(expired.offsets)} ran out, while A was working on "
        f"them. B has them now, with delivery count {again.change.delivery_count}. A does not know."
    )


def _refused(e: Evidence) -> str:
    ((refused_ms, refusal),) = e.events(AcknowledgementRefused)
    by_b = [timed for timed in e.accepted().values() if timed.time_ms > refused_ms]
    return (
        f"At {seconds(refused_ms)} the leader refused {e.name(refusal.member_id)}'s acknowledgement with "
        f"{Errors(refusal.error).name}: only the member that holds the lock may acknowledge. B's was accepted at "
        f"{seconds(by_b[0].time_ms)}. Each of the {len(by_b)} records was processed twice, and acknowledged once."
    )


def _renewed(e: Evidence) -> str:
    renewals, expired = e.changes(RecordEvent.RENEW), e.timeouts()
    return (
        f"A renewed its locks {times(len({timed.time_ms for timed in renewals}))}, {count(renewals)} records in all, "
        f"and {count(expired)} locks ran out. All {len(e.accepted())} records are acknowledged, each after one "
        "delivery."
    )


def _zombie(e: Evidence) -> str:
    ((left_ms, _),) = e.events(MemberLeft)
    (expired,) = e.timeouts()
    return (
        f"A sends no heartbeat. Its locks ran out at {seconds(expired.time_ms)}, and the group removed it at "
        f"{seconds(left_ms)}, after {seconds(e.steering[f'share.session.timeout.ms of {GROUP}'].value)} of silence. C "
        f"holds records {span(e.held('C'))} now."
    )


def _zombie_returns(e: Evidence) -> str:
    ((back_ms, _),) = e.events(FaultInjected)
    ((refused_ms, refusal),) = e.events(AcknowledgementRefused)
    by_c = [timed for timed in e.accepted().values() if timed.time_ms > refused_ms]
    joined = [time_ms for time_ms, event in e.events(MemberJoined) if e.name(event.member_id) == "A"]
    return (
        f"A continues at {seconds(back_ms)} as if no time had passed. The leader refuses its acknowledgement at "
        f"{seconds(refused_ms)} with {Errors(refusal.error).name}, and A joins the group again at "
        f"{seconds(joined[0])}. C's {len(by_c)} acknowledgements are accepted at {seconds(by_c[0].time_ms)}: no "
        "record is lost, and none is acknowledged twice."
    )


SLOW_CONSUMER = Preset(
    name="slow consumer and zombie acknowledgement",
    title="A slow consumer, and a zombie's acknowledgement",
    label="slow consumer",
    about="Work that takes longer than the lock, renewal as the remedy, and an acknowledgement that is too late.",
    beginning=(*BEGINNING, ("work time of A", 8000), ("work time of B", 3000)),
    steps=(
        Step(
            text="Five records are produced, and A takes them: 8 s of work each, 40 s in all. A lock lasts 30 s.",
            question="Which consumer holds the records after 35 seconds?",
            actions=(("produce", 5), ("advance", 35_000)),
            answer=_locks_lost,
        ),
        Step(
            text="A finishes its work and acknowledges the records, while B is still working on them.",
            question="Does A's acknowledgement count?",
            actions=(("advance", 15_000),),
            answer=_refused,
        ),
        Step(
            text="B is closed, and A renews its locks after each half of their duration. Five more records are "
            "produced.",
            question="Do the locks hold for 40 s of work?",
            actions=(("policy of A", "renew"), ("close B", None), ("produce", 5), ("advance", 45_000)),
            answer=_renewed,
        ),
        Step(
            text="A takes five more records, without renewals, and is frozen as by a long pause: its connections stay "
            "open, but it does nothing. A new consumer, C, joins. 50 seconds pass.",
            question="Which of the two ends first: A's locks, or its membership?",
            actions=(
                ("policy of A", "accept"),
                ("commit of A", "record"),
                ("produce", 5),
                ("advance", 1000),
                ("freeze A", None),
                ("add consumer", "accept"),
                ("work time of C", 5000),
                ("advance", 50_000),
            ),
            answer=_zombie,
        ),
        Step(
            text="A continues. It finishes its first record and acknowledges it; C has the same record in work.",
            question="What becomes of its acknowledgement?",
            actions=(("unfreeze A", None), ("advance", 60_000)),
            answer=_zombie_returns,
        ),
    ),
)
