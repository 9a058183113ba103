"""Stories of brokers: the share-partition leader dies, the group coordinator dies, all restart one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from shareq.model.events import (
    BrokerStopped,
    CoordinatorLoaded,
    GroupEpochBumped,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    SharePartitionLoaded,
)
from shareq.model.ids import GROUP_METADATA_TOPIC
from shareq.trace.journal.event_text import count_text
from shareq_widgets.steering.steering import Steering
from shareq_widgets.steering.stories.evidence import GROUP, TOPIC, Evidence, count, seconds, span, times, window
from shareq_widgets.steering.stories.story import BEGINNING, Action, Preset, Step

BOTH_SLOW = (*BEGINNING, ("work time of A", 3000), ("work time of B", 3000))


def leader(steering: Steering) -> int:
    """The broker that leads the share-partition."""
    return steering.cluster.image.topics[TOPIC].partitions[0].leader


def coordinator(steering: Steering) -> int:
    """The broker that coordinates the group."""
    return int(steering.admin.describe_share_groups([GROUP])[GROUP].coordinator)


def _all_delivered(e: Evidence) -> str:
    accepted = e.accepted(whole=True)
    repeated = count(e.acquisitions(whole=True)) - e.log_end
    moved = sum(event.topic == TOPIC for _, event in e.events(LeaderElected, whole=True)) > 1
    return (
        f"{len(accepted)} of {e.log_end} records are acknowledged, {e.log_end - len(accepted)} are lost: "
        f"{window(e.state)}. {_repetitions(repeated, moved=moved)}"
    )


def _repetitions(repeated: int, *, moved: bool) -> str:
    """Why records were acquired again, or why none was. `moved`: the share-partition has had another leader."""
    if repeated:
        why = "because a new leader knows no locks of the old one" if moved else "because locks ran out"
        return f"{repeated} records were acquired again, {why}."
    if moved:
        return "No record was acquired twice: no member held a lock when the leadership moved."
    return "No record was acquired twice: the leader of the share-partition, which has the locks, never stopped."


# ---- leader failover -------------------------------------------------------------------------------------------------


def _in_memory(e: Evidence) -> str:
    return (
        f"Broker {leader(e.steering)} leads the share-partition: A holds records {span(e.held('A'))}, B holds "
        f"{span(e.held('B'))}. {window(e.state)}. Locks and delivery counts of records in work are in the "
        "leader's memory only; the state topic has neither."
    )


def _kill_leader(steering: Steering) -> Iterator[Action]:
    yield f"kill broker {leader(steering)}", None
    yield "advance", 15_000


def _reloaded(e: Evidence) -> str:
    ((_, stopped),) = e.events(BrokerStopped)
    elected_ms, elected = next((t, found) for t, found in e.events(LeaderElected) if found.topic == TOPIC)
    loaded_ms, loaded = e.events(SharePartitionLoaded)[0]
    again = e.acquisitions()
    counts = sorted({timed.change.delivery_count for timed in again})
    return (
        f"Broker {stopped.broker_id} died, and broker {elected.leader} leads since {seconds(elected_ms)}, with leader "
        f"epoch {elected.leader_epoch}. At {seconds(loaded_ms)}, when a consumer fetched again, it read from the "
        f"state topic that SPSO is {loaded.spso}, and {_finished(loaded)}: the locks are lost, and the records are "
        f"available again. {count(again)} were acquired once more, with delivery count {', '.join(map(str, counts))}: "
        "the first attempts were never written."
    )


def _finished(loaded: SharePartitionLoaded) -> str:
    """The records from the SPSO on of which the state topic knows a result."""
    records = sum(end - first for first, end, *_ in loaded.runs)
    return f"the results of {count_text(records, 'record')}" if records else "no result of any record"


LEADER_FAILOVER = Preset(
    name="leader failover",
    title="Failover of the share-partition leader",
    label="leader fails",
    about="The broker dies that has the locks in its memory.",
    beginning=BOTH_SLOW,
    steps=(
        Step(
            text="Twenty records are produced. A and B take five each.",
            question="What of this is durable?",
            actions=(("produce", 20), ("advance", 1000)),
            answer=_in_memory,
        ),
        Step(
            text="The leader of the share-partition is killed. 15 seconds pass.",
            question="What does the new leader know about the records in work?",
            actions=_kill_leader,
            answer=_reloaded,
        ),
        Step(
            text="A minute passes.",
            question="Is any record lost?",
            actions=(("advance", 60_000),),
            answer=_all_delivered,
        ),
    ),
)

# ---- coordinator failover --------------------------------------------------------------------------------------------


def _at_work(e: Evidence) -> str:
    return (
        f"Broker {coordinator(e.steering)} coordinates the group, broker {leader(e.steering)} leads the "
        f"share-partition. {len(e.accepted())} records were acknowledged in five seconds. Heartbeats go to the "
        "first, fetches and acknowledgements to the second."
    )


def _kill_coordinator(steering: Steering) -> Iterator[Action]:
    yield f"kill broker {coordinator(steering)}", None
    yield "advance", 20_000


def _moved(e: Evidence) -> str:
    ((killed_ms, stopped),) = e.events(BrokerStopped)
    loaded = [
        (t, found)
        for t, found in e.events(CoordinatorLoaded)
        if found.topic == GROUP_METADATA_TOPIC and found.record_count
    ]
    beats = [(t, e.name(beat.member_id), beat) for t, beat in e.events(HeartbeatReceived) if not beat.error]
    first = {name: t for t, name, _ in reversed(beats)}
    epochs = sorted({beat.member_epoch for _, _, beat in beats})
    heartbeats = " and ".join(f"{name}'s at {seconds(first[name])}" for name in sorted(first))
    return (
        f"Broker {stopped.broker_id} died at {seconds(killed_ms)}. Broker {coordinator(e.steering)} replayed "
        f"{sum(found.record_count for _, found in loaded)} records of the group's metadata at {seconds(loaded[0][0])}. "
        f"The first heartbeats that it received were {heartbeats}, with the old member epoch "
        f"{', '.join(map(str, epochs))}: {len(e.events(MemberJoined))} members joined anew, and the group epoch "
        f"changed {len(e.events(GroupEpochBumped))} times. Meanwhile {len(e.accepted())} records were acknowledged."
    )


COORDINATOR_FAILOVER = Preset(
    name="coordinator failover",
    title="Failover of the group coordinator",
    label="coordinator fails",
    about="The broker dies that knows the members of the group.",
    steps=(
        Step(
            text="Ten records a second are produced, for five seconds.",
            question="Which broker does what?",
            actions=(("rate", 10), ("advance", 5000)),
            answer=_at_work,
        ),
        Step(
            text="The group coordinator is killed, while records keep coming. 20 seconds pass.",
            question="Do the members have to join again, and does delivery stop meanwhile?",
            actions=_kill_coordinator,
            answer=_moved,
        ),
        Step(
            text="The producer stops, and the rest is worked off.",
            question="Is any record lost?",
            actions=(("rate", 0), ("advance", 60_000)),
            answer=_all_delivered,
        ),
    ),
)

# ---- rolling restart -------------------------------------------------------------------------------------------------


def _restart_all(steering: Steering) -> Iterator[Action]:
    for broker_id in sorted(steering.cluster.image.brokers):
        yield f"stop broker {broker_id}", None
        yield "advance", 5000
        yield f"start broker {broker_id}", None
        yield "advance", 5000


def _before_restart(e: Evidence) -> str:
    return f"{len(e.accepted())} records were acknowledged in five seconds. {window(e.state)}."


def _restarted(e: Evidence) -> str:
    stopped = e.events(BrokerStopped)
    killed = [event for _, event in stopped if event.killed]
    led = [event.leader for _, event in e.events(LeaderElected, whole=True) if event.topic == TOPIC]
    return (
        f"{len(stopped)} brokers were stopped in order, {len(killed)} of them killed. The leadership of the "
        f"share-partition moved {times(len(led) - 1)} ({' → '.join(map(str, led))}), before its broker ended. "
        f"{len(e.accepted())} records were acknowledged meanwhile, and {count(e.timeouts())} locks ran out."
    )


ROLLING_RESTART = Preset(
    name="rolling restart",
    title="A rolling restart",
    label="rolling restart",
    about="All brokers are restarted one after the other, under load.",
    steps=(
        Step(
            text="Ten records a second are produced, for five seconds.",
            question="How many records are finished?",
            actions=(("rate", 10), ("advance", 5000)),
            answer=_before_restart,
        ),
        Step(
            text="Each broker is stopped in an orderly way and started again five seconds later. Records keep coming.",
            question="Does delivery stop? Do locks run out?",
            actions=_restart_all,
            answer=_restarted,
        ),
        Step(
            text="The producer stops, the preferred leaders are elected, and the rest is worked off.",
            question="Was every record delivered?",
            actions=(("rate", 0), ("elect preferred leaders", None), ("advance", 60_000)),
            answer=_all_delivered,
        ),
    ),
)
