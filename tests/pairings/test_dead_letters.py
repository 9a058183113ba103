"""The worked examples of dead-letter queues on a served cluster of shareq, and on Apache Kafka.

Examples 9 and 28 need brokers of their own (`test_dead_letters_of_prepared_brokers.py`), 20 to 26 three of them
(`test_dead_letters_of_three.py`). What does not run on a real broker, and why:

- the meters of 10, 14, 16 and 20: no client asks for them (`tests/kafka/test_metric_names.py` reads them by JMX);
- the order of 12, and when the second letters of 23 are written: the delays of Kafka's retries are random;
- 20's INVALID_RECORD_STATE: a consumer acknowledges a record once;
- 26's loss after the last retry: it takes half a minute to a minute, by Kafka's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from shareq import Admin
from shareq.kafka import LocalKafka
from shareq.wire.server import Server
from tests.budgets import cases
from tests.kafka.fixtures import Backed
from tests.pairings.dead_letter_examples import EXAMPLES
from tests.pairings.dead_letter_scenarios import (
    Plan,
    differing_letters,
    differing_states,
    disorder,
    folded,
    plan,
    run,
    state_records,
)
from tests.pairings.dead_letter_states import WRITTEN, meaning, written
from tests.pairings.dead_letters import AUTO_CREATE, PREFIX, DeadLetterStage, Letter

BROKERS = ("served", "backed", "kafka")
OF_BROKERS = ("example_10_a_queue_with_a_foreign_prefix", "example_11", "example_12", "example_27")
"""On a backend, brokers' configurations are those of the process (`test_dead_letters_on_a_backend.py`), and its
share.version does not change."""
LOCK_MS = 5_000
"""Longer than a stalled machine delays an acknowledgement."""


@pytest.fixture
def stage(request: pytest.FixtureRequest, fresh: Callable[[str], str]) -> Iterator[DeadLetterStage]:
    """Letters that a queue refuses are archived, as in Kafka, which lacks the key."""
    broker: Server | Backed | LocalKafka = request.getfixturevalue(request.param)
    archive = None if request.param == "kafka" else "archive"
    made = DeadLetterStage(broker.bootstrap_servers, fresh, unavailable=archive, lock_ms=LOCK_MS)
    with made.stack:
        yield made
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.incremental_alter_configs("broker", "", {AUTO_CREATE: None, PREFIX: None})


@pytest.mark.parametrize(
    ("stage", "name"),
    [(kind, name) for kind in BROKERS for name in EXAMPLES if kind != "backed" or not name.startswith(OF_BROKERS)],
    indirect=["stage"],
)
def test_worked_examples(request: pytest.FixtureRequest, stage: DeadLetterStage, name: str) -> None:
    body, here, in_kafka = EXAMPLES[name]
    of_kafka = request.node.callspec.params["stage"] == "kafka"
    assert body(stage) == (in_kafka if of_kafka else here)
    if name in WRITTEN:
        found = written(stage)
        assert meaning(found) == meaning(WRITTEN[name])
        assert not of_kafka or found == WRITTEN[name]  # shareq archives several records with one write, or by rounds


SCENARIOS = cases(3, 20, "SHAREQ_SCENARIOS")
"""SHAREQ_SCENARIOS=200 plays more of them."""
AT_ONCE = 6


@pytest.mark.parametrize("kind", BROKERS)
def test_scenarios_have_the_letters_and_states_that_follow_from_them(
    request: pytest.FixtureRequest, fresh: Callable[[str], str], seed: int, kind: str
) -> None:
    """Kafka has the letters in another order, some of them twice where the last member left meanwhile (example 23), and
    its records of the state topic divide ranges differently."""
    broker: Server | Backed | LocalKafka = request.getfixturevalue(kind)
    scenarios = [plan(f"{seed}/{number}") for number in range(SCENARIOS)]

    def play(scenario: Plan) -> tuple[str, list[Letter]]:
        stage = DeadLetterStage(broker.bootstrap_servers, fresh, unavailable=None if kind == "kafka" else "archive")
        with stage.stack:
            letters = run(stage, scenario, LOCK_MS)
            return stage.group, list(dict.fromkeys(letters)) if kind == "kafka" else letters

    with ThreadPoolExecutor(AT_ONCE) as threads:
        played = list(threads.map(play, scenarios))
    durable = folded(state_records(broker.bootstrap_servers))
    differing = [
        f"{number}: {difference}"
        for number, (scenario, (group, letters)) in enumerate(zip(scenarios, played, strict=True))
        for difference in (
            *differing_letters(scenario, letters),
            *differing_states(scenario, durable[group]),
            *(() if kind == "kafka" else disorder(letters, durable[group])),
        )
    ]
    assert not differing, "\n".join(differing)
