"""Lesson 18, beyond the KIP: what a back-off survives, which records of a key may be delivered, the cut of a line."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Final

from shareq.coordinator.share_group.experiments.cut_assignor import Line
from shareq.lessons.bench import Bench, settle
from shareq.lessons.beyond import ENABLED
from shareq.lessons.checks import NotYet, Passed
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.model.experiments import BACKOFF_MAX_MS, BACKOFF_MS, KEY_MAX_IN_FLIGHT, KEY_ORDERING
from shareq.model.ids import TopicIdPartition, topic_id_from_bytes
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer

EXERCISES: Final = Exercises("18")


@EXERCISES.judged_by(
    "The last try",
    "There is a rest before each delivery but the first: limit - 1 rests.",
    "The rest after delivery c is min(most_ms, first_ms * 2 ** (c - 1)); add them up.",
)
def the_last_try(answer: Answer) -> Passed:
    for first_ms, most_ms, limit in ((1000, 60_000, 5), (500, 3000, 6), (2000, 2000, 4), (100, 60_000, 2)):
        found = ask(answer, first_ms, most_ms, limit, wants=(int, float))
        last_ms = _last_delivery_ms(first_ms, most_ms, limit)
        if found != last_ms:
            raise NotYet(
                f"✗ first rest {first_ms:,} ms, at most {most_ms:,} ms, {limit} deliveries: the last one came "
                f"{last_ms:,} ms after the first, and not {found:,}"
            )
    return Passed("✓ an outage that ends before the last try costs no record: choose the back-off by it")


def _last_delivery_ms(first_ms: int, most_ms: int, limit: int) -> int:
    """Release a record until it is archived: the time from its first delivery to its last one."""
    configs = {BACKOFF_MS: first_ms, BACKOFF_MAX_MS: most_ms, "share.delivery.count.limit": limit}
    bench = Bench(1, configs=configs, config=ENABLED)
    ann, tries = bench.consumer("ann"), []
    while messages := ann.poll(120):
        tries.append(bench.cluster.now_ms)
        settle(ann, messages, AcknowledgeType.RELEASE)
    return tries[-1] - tries[0]


@EXERCISES.judged_by(
    "Whose turn?",
    "Look at the records of one key alone: if one of them is held, none may be delivered.",
    "Else its first in_flight waiting records may.",
    "The answer is a list of the places of all keys, ascending.",
)
def whose_turn(answer: Answer) -> Passed:
    rng = random.Random(18)
    for _ in range(8):
        in_flight = rng.randint(1, 2)
        window, allowed = _window(rng, in_flight)
        found = ask(answer, list(window), in_flight, wants=list)
        if found != allowed:
            shown = ", ".join(f"{place}: {key} {state}" for place, (key, state) in enumerate(window))
            raise NotYet(f"✗ {in_flight} in flight, {shown}: the leader delivered {allowed}, and not {found}")
    return Passed("✓ 8 windows: a key waits for itself and for no other")


def _window(rng: random.Random, in_flight: int) -> tuple[list[tuple[str, str]], list[int]]:
    """A window of records with keys, some of which are held, and the places that the leader delivers next."""
    keys = [rng.choice("abc") for _ in range(7)]
    bench = Bench(configs={KEY_ORDERING: "key", KEY_MAX_IN_FLIGHT: in_flight}, config=ENABLED)
    with Producer({"bootstrap.servers": bench.cluster.bootstrap_servers}) as producer:
        for key in keys:
            producer.produce(bench.topic, "job", key=key)
    ann, ben = bench.consumer("ann"), bench.consumer("ben")
    held = {message.offset(): message for message in ann.poll(1)}
    released = [message for message in held.values() if rng.random() < 0.5]
    settle(ann, released, AcknowledgeType.RELEASE)
    states = ["held" if at in held and held[at] not in released else "waiting" for at in range(len(keys))]
    return list(zip(keys, states, strict=True)), [at for message in ben.poll(1) if (at := message.offset()) is not None]


@EXERCISES.judged_by(
    "Cut the line",
    "A piece is sum(weights) / members long; piece m reaches from m to m + 1 of these lengths.",
    "Partition p reaches from sum(weights[:p]) to sum(weights[:p + 1]). Which partitions does a piece touch?",
    "Multiply all lengths by the number of members: then nothing is a fraction, and borders are exact.",
)
def cut_the_line(answer: Answer) -> Passed:
    rng = random.Random(18)
    cases = [([3, 1], 4), ([3, 1], 3), ([1, 1, 1, 1], 2)]
    cases += [([rng.choice((1, 1, 2, 5, 30)) for _ in range(rng.randint(1, 5))], rng.randint(1, 6)) for _ in range(60)]
    for weights, members in cases:
        found = ask(answer, list(weights), members, wants=list)
        pieces = _pieces(weights, members)
        if [[*piece] for piece in found if isinstance(piece, list | tuple | range)] != pieces:
            ends = ", ".join(map(str, accumulate(weights)))
            raise NotYet(
                f"✗ weights {weights}, which end at {ends}, and {members} members: the pieces are {pieces}, "
                f"and not {found}"
            )
    return Passed("✓ 63 lines cut: all pieces weigh the same")


def _pieces(weights: list[int], members: int) -> list[list[int]]:
    """The partitions of each member, by the assignor itself."""
    topic_id = topic_id_from_bytes((64).to_bytes(16, "big"))
    partitions = tuple(TopicIdPartition(topic_id, index) for index in range(len(weights)))
    names = tuple(f"m{number}" for number in range(members))
    line = Line(partitions, tuple(weights), names, ([],) * members)
    return [list(range(piece.first, piece.last + 1)) for piece in line.pieces()]
