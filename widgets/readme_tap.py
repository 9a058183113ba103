"""Creates the picture of a tap in the README: the strip of a share group of Apache Kafka, with its holders.

    .venv/bin/python widgets/readme_tap.py

starts an Apache Kafka behind a tap, and three programs with confluent-kafka's share consumer that connect to the tap,
and writes `tap-light.svg` and `tap-dark.svg` beside this file, at a moment at which each program holds records.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

from shareq import Admin, NewTopic, Producer
from shareq.kafka import LocalKafka
from shareq.proxy import Tap
from shareq.trace.views.snapshot import StripSnapshot
from shareq_widgets.look import THEMES
from shareq_widgets.strip_picture import draw

GROUP, TOPIC = "payments", "orders"
PROGRAMS: Final = {"worker-1": 0.1, "worker-2": 0.4, "worker-3": 0.2}
"""Client id -> the seconds that the program works on a record."""
RECORDS: Final = 18
"""The lag up to which records are produced: they fit into the picture."""
WIDTH: Final = 900
PATIENCE_S: Final = 120

PROGRAM: Final = """
import sys, time
from confluent_kafka import AcknowledgeType, ShareConsumer
servers, name, group, topic, seconds = sys.argv[1:]
consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group, "client.id": name, "log_level": 0,
    "max.poll.records": 4, "share.acknowledgement.mode": "explicit"})
consumer.subscribe([topic])
while True:
    for message in consumer.poll(1):
        time.sleep(float(seconds))
        again = message.offset() % 5 == 3 and message.delivery_count() == 1
        consumer.acknowledge(message, AcknowledgeType.RELEASE if again else AcknowledgeType.ACCEPT)
"""


def picture_of(moment: StripSnapshot, theme: str) -> str:
    """The strip as SVG."""
    return draw(moment, width=WIDTH, theme=theme)


def busy_moment() -> StripSnapshot:
    """A moment at which each program holds records; between these, some are accepted, and some delivered again."""
    with LocalKafka(tap=True) as kafka, _programs(kafka.bootstrap_servers):
        assert kafka.tap is not None
        with Producer({"bootstrap.servers": kafka.bootstrap_servers}) as producer:
            return _observed(kafka.tap, producer)


def _observed(tap: Tap, producer: Producer) -> StripSnapshot:
    end = monotonic() + PATIENCE_S
    while monotonic() < end:
        tap.refresh()
        moment = tap.view(GROUP, TOPIC).snapshot()
        if (moment["lag"] or 0) < RECORDS:
            producer.produce(TOPIC, "an order")
            producer.flush()  # a batch for each record: Kafka delivers batches as a whole
        if _is_busy(moment):
            return moment
    raise TimeoutError(f"no moment in {PATIENCE_S} s at which all of {', '.join(PROGRAMS)} hold records")


def _is_busy(moment: StripSnapshot) -> bool:
    holders = {member["name"] for member in moment["members"] if member["held"]}
    in_flight = [run for run in moment["runs"] if run[1] > moment["spso"]]
    states, again = {run[2] for run in in_flight}, any(run[3] == 2 for run in in_flight)
    return holders == PROGRAMS.keys() and "acknowledged" in states and again


@contextmanager
def _programs(servers: str) -> Iterator[None]:
    """Create topic and group, and run the programs until the block ends."""
    with Admin({"bootstrap.servers": servers}) as admin, ExitStack() as ending:
        admin.create_topics([NewTopic(TOPIC, 1)]).check()
        admin.alter_group_configs(GROUP, {"share.auto.offset.reset": "earliest"})
        for name, seconds in PROGRAMS.items():
            program = [sys.executable, "-c", PROGRAM, servers, name, GROUP, TOPIC, str(seconds)]
            ending.callback(subprocess.Popen(program).kill)
        yield


def main() -> None:
    moment = busy_moment()
    for theme in THEMES:
        Path(__file__).with_name(f"tap-{theme}.svg").write_text(picture_of(moment, theme))


if __name__ == "__main__":
    main()
