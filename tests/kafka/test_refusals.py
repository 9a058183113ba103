"""The reason of a Kafka that does not start is one sentence."""

from __future__ import annotations

import pytest

from shareq.kafka.refusals import reason_in

TRACE = (
    "\n\tat org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:789)\n\tat kafka.Kafka.main(Kafka.scala)"
)
CONFIG = 'Exception in thread "main" org.apache.kafka.common.config.ConfigException: '


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        pytest.param(
            f"{CONFIG}Invalid value abc for configuration num.partitions: Not a number of type INT{TRACE}",
            "num.partitions=abc: not a number of type INT",
            id="a type",
        ),
        pytest.param(
            f"{CONFIG}Invalid value 1 for configuration group.share.max.x.ms: Value must be at least 30000{TRACE}",
            "group.share.max.x.ms=1: value must be at least 30000",
            id="a range",
        ),
        pytest.param(
            "[2026-01-01] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
            f"java.lang.IllegalArgumentException: requirement failed: cleaner needs more{TRACE}",
            "cleaner needs more",
            id="in a log",
        ),
        pytest.param(
            f"java.lang.RuntimeException: failed{TRACE}\nCaused by: java.io.IOException: No space left{TRACE}",
            "No space left",
            id="its cause",
        ),
        pytest.param("Killed\n", "", id="no exception"),
    ],
)
def test_the_reason_is_that_of_the_exception(output: str, reason: str) -> None:
    assert reason_in(output) == reason
