"""Stories of consumers: a slow record, poison, a crash, a full window."""

from __future__ import annotations

from shareq.model.events import MemberLeft
from shareq.model.states import SETTLED, RecordEvent, RecordState
from shareq_widgets.steering.stories.evidence import GROUP, Evidence, count, later, seconds, span, times, window
from shareq_widgets.steering.stories.story import BEGINNING, Preset, Step

# ---- head-of-line blocking -------------------------------------------------------------------------------------------


def _slow_record_taken(e: Evidence) -> str:
    slow, others = e.held("A"), e.held("B")
    return (
        f"A holds record {span(slow)}, B holds {span(others)}: {window(e.state)}. The {e.log_end} records are in one "
        "partition, and two consumers work on it at the same time."
    )


def _line_moves_on(e: Evidence) -> str:
    accepted = e.accepted()
    return (
        f"{len(accepted)} of {e.log_end} records are acknowledged, all behind record {e.held('A')[0]}, which A still "
        f"holds: {window(e.state)}. Only the SPSO waits for the slow record. In a consumer group the "
        "partition would have one owner, and all these records would wait."
    )


def _slow_record_done(e: Evidence) -> str:
    ((offset, done),) = e.accepted().items()
    (moved_ms, spso) = e.spso_moves()[-1]
    return (
        f"A's acknowledgement of record {offset} is durable at {seconds(done.time_ms)}, and at {seconds(moved_ms)} the "
        f"SPSO moves from {offset} to {spso} at once, past all records that were finished before."
    )


HEAD_OF_LINE_BLOCKING = Preset(
    name="head-of-line blocking",
    title="Head-of-line blocking",
    label="head of line",
    about="One record takes 20 s, and 29 ordinary ones are behind it in the same partition.",
    beginning=(*BEGINNING, ("slow-record time of A", 20_000), ("slow-record time of B", 20_000)),
    steps=(
        Step(
            text="A slow record is produced, then 29 ordinary ones, to one partition. A and B are waiting for records.",
            question="Which consumer works on what?",
            actions=(
                ("slow every", 1),
                ("produce", 1),
                ("slow every", 0),
                ("produce", 29),
                ("advance", 100),
            ),
            answer=_slow_record_taken,
        ),
        Step(
            text="Ten seconds pass. The first record needs twenty.",
            question="How many of the records behind it are finished, and where is the SPSO?",
            actions=(("advance", 10_000),),
            answer=_line_moves_on,
        ),
        Step(
            text="Ten more seconds pass, and the slow record is done.",
            question="Where does the SPSO go, and in how many moves?",
            actions=(("advance", 10_000),),
            answer=_slow_record_done,
        ),
    ),
)

# ---- poison ----------------------------------------------------------------------------------------------------------


def _poison_goes_round(e: Evidence) -> str:
    ((offset, end),) = e.ended(RecordState.ARCHIVED).items()
    attempts = [timed for timed in e.acquisitions() if offset in timed.offsets]
    return (
        f"Record {offset} was delivered {times(len(attempts))} in {seconds(end.time_ms - attempts[0].time_ms)}, "
        f"released each time, and archived: share.delivery.count.limit is {e.state.delivery_count_limit}. The other "
        f"{len(e.accepted())} records are acknowledged. {window(e.state)}."
    )


def _poison_rejected(e: Evidence) -> str:
    ((offset, end),) = e.ended(RecordState.ARCHIVED).items()
    attempts = [timed for timed in e.acquisitions() if offset in timed.offsets]
    return (
        f"Record {offset} was delivered {times(len(attempts))}, and archived "
        f"{seconds(end.time_ms - attempts[0].time_ms)} later, at delivery count {end.change.delivery_count}. REJECT "
        "is final; RELEASE is another attempt."
    )


POISON = Preset(
    name="poison",
    title="Poison",
    label="poison",
    about="A record that no consumer can process.",
    beginning=(
        *BEGINNING,
        ("policy of A", "release poison"),
        ("policy of B", "release poison"),
        ("poison every", 10),
    ),
    steps=(
        Step(
            text="Ten records are produced; the last one is poison. Both consumers release what they cannot process.",
            question="How often is the poison delivered, and does the queue get past it?",
            actions=(("produce", 10), ("advance", 10_000)),
            answer=_poison_goes_round,
        ),
        Step(
            text="Now both consumers reject poison. Ten more records follow; the last one is poison again.",
            question="How many deliveries does this poison take?",
            actions=(
                ("policy of A", "reject poison"),
                ("policy of B", "reject poison"),
                ("produce", 10),
                ("advance", 10_000),
            ),
            answer=_poison_rejected,
        ),
    ),
)

# ---- a crashed consumer ----------------------------------------------------------------------------------------------


def _holds(e: Evidence) -> str:
    (taken,) = e.acquisitions("A")
    return (
        f"A acquired records {span(taken.offsets)} at {seconds(taken.time_ms)}; their locks run for "
        f"{seconds(e.state.lock_duration_ms)}. No acknowledgement is sent yet, so nothing is durable."
    )


def _still_locked(e: Evidence) -> str:
    (taken,) = e.acquisitions("A", whole=True)
    if not e.held("A"):  # a shorter lock was chosen before the first step
        return _locks_expired(e)
    left_ms = (taken.change.deadline_ms or 0) - e.steering.cluster.now_ms
    return (
        f"B gets none of them: {len(e.held('A'))} records are still locked for A, for another {seconds(left_ms)}. The "
        "leader cannot know that A is dead; only the lock's time-out frees the records."
    )


def _locks_expired(e: Evidence) -> str:
    (taken,) = e.acquisitions("A", whole=True)
    (expired,) = e.timeouts(whole=True)
    again = [timed for timed in e.acquisitions("B", whole=True) if timed.change.first in expired.offsets]
    counts = sorted({timed.change.delivery_count for timed in again})
    return (
        f"The locks expired at {seconds(expired.time_ms)}, exactly {seconds(expired.time_ms - taken.time_ms)} after "
        f"the acquisition. B acquired the {count(again)} records {later(again[0].time_ms - expired.time_ms)}, with "
        f"delivery count {', '.join(map(str, counts))}."
    )


def _member_gone(e: Evidence) -> str:
    ((left_ms, left),) = e.events(MemberLeft)
    return (
        f"The group removes {e.name(left.member_id)} at {seconds(left_ms)} ({left.reason}): a member may be silent for "
        f"{seconds(e.steering[f'share.session.timeout.ms of {GROUP}'].value)}. All {len(e.accepted(whole=True))} "
        "records are acknowledged. Locks and membership end independently of each other."
    )


CRASHED_CONSUMER = Preset(
    name="crashed consumer",
    title="A crashed consumer",
    label="crashed consumer",
    about="A consumer dies with records in its hands.",
    beginning=(*BEGINNING, ("work time of A", 1000)),
    steps=(
        Step(
            text="Five records are produced. A takes them, and works on each for a second.",
            question="What does the leader know about A's progress after two seconds?",
            actions=(("produce", 5), ("advance", 2000)),
            answer=_holds,
        ),
        Step(
            text="A crashes: its process ends, and no broker gets a message. Twenty seconds pass.",
            question="Does B, which is idle, get A's records?",
            actions=(("crash A", None), ("advance", 20_000)),
            answer=_still_locked,
        ),
        Step(
            text="Ten more seconds pass.",
            question="When are the records delivered again, and with which delivery count?",
            actions=(("advance", 10_000),),
            answer=_locks_expired,
        ),
        Step(
            text="Twenty more seconds pass.",
            question="When does the group notice that A is gone?",
            actions=(("advance", 20_000),),
            answer=_member_gone,
        ),
    ),
)

# ---- a full window ---------------------------------------------------------------------------------------------------


def _window_fills(e: Evidence) -> str:
    last = e.acquisitions()[-1]
    state = e.state
    return (
        f"B finished {len(e.accepted())} records, and has acquired none since {seconds(last.time_ms)}. "
        f"{window(state)}: {state.in_flight} records in flight, which is "
        f"share.partition.max.record.locks={state.max_record_locks}. "
        f"{e.log_end - state.window_end} records wait above the window, because A's record {state.spso} holds the SPSO."
    )


def _window_moves(e: Evidence) -> str:
    released = [timed for timed in e.changes(SETTLED) if timed.change.why == RecordEvent.SESSION_RELEASE]
    moves = e.spso_moves()
    first = next((time_ms, spso) for time_ms, spso in moves if spso > released[0].change.first)
    return (
        f"Closing A released {count(released)} records. B took them, and at {seconds(first[0])} the SPSO moved to "
        f"{first[1]}; acquisitions went on at once. All {len(e.accepted(whole=True))} records are acknowledged: "
        f"{window(e.state)}."
    )


WINDOW_FULL = Preset(
    name="window full",
    title="A full window",
    label="full window",
    about="One stuck record at the SPSO stops a whole share-partition.",
    beginning=(
        *BEGINNING,
        (f"share.partition.max.record.locks of {GROUP}", 100),
        (f"share.record.lock.duration.ms of {GROUP}", 60_000),
        ("work time of A", 50_000),
        ("work time of B", 1),
    ),
    steps=(
        Step(
            text="At most 100 records may be in flight. 300 are produced; A is very slow, B is very fast.",
            question="How many records does B finish in five seconds?",
            actions=(("produce", 300), ("advance", 5000)),
            answer=_window_fills,
        ),
        Step(
            text="A is closed.",
            question="What lets the window move, and how far?",
            actions=(("close A", None), ("advance", 5000)),
            answer=_window_moves,
        ),
    ),
)
