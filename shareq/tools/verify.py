"""`shareq verify`: Kafka's kafka-verifiable-share-consumer, with a producer and a verdict.

Each event of the consumer is a line of JSON, as Kafka 4.4's tool prints it. With --produce the command also writes
records, and checks that each of them is delivered and finished, and none delivered again after that.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from shareq.admin import Admin
from shareq.client.message import Message
from shareq.client.properties import client_properties
from shareq.client.topic_partition import TopicPartition
from shareq.consumer import ShareConsumer
from shareq.model.errors import KafkaError, KafkaException
from shareq.model.states import AcknowledgeType
from shareq.signals.end_signals import interrupted_by_signals
from shareq.tools.connection import Connection, client_options
from shareq.tools.hints import without_hints

POLL_S = 0.5
PATTERN_TYPES = ("accept", "release", "reject", "renew")
PartitionOffset = tuple[int, int]
"""Partition and offset."""


def _pattern(ctx: click.Context, param: click.Parameter, value: str | None) -> list[AcknowledgeType]:
    del ctx, param
    names = [] if value is None else [name.strip().lower() for name in value.split(",")]
    if unknown := [name for name in names if name not in PATTERN_TYPES]:
        raise click.BadParameter(f"{unknown[0]!r}: must be one of {', '.join(PATTERN_TYPES)}")
    return [AcknowledgeType[name.upper()] for name in names]


@click.command()
@client_options
@click.option("--topic", required=True, help="The topic.")
@click.option("--group-id", required=True, metavar="ID", help="The share group.")
@click.option("--max-messages", type=int, default=-1, metavar="N", help="End after N acknowledged messages.")
@click.option("--verbose", is_flag=True, help="Print each message.")
@click.option(
    "--acknowledgement-mode",
    type=click.Choice(["auto", "sync", "async"], case_sensitive=False),
    default="auto",
    show_default=True,
    help="auto: the next poll accepts the messages of the last one.",
)
@click.option(
    "--ack-pattern",
    "pattern",
    callback=_pattern,
    metavar="TYPE,...",
    help="The types accept, release, reject, renew of successive offsets, in turn; a message that comes again is "
    "accepted. It needs the mode sync or async.",
)
@click.option(
    "--offset-reset-strategy",
    type=click.Choice(["earliest", "latest"], case_sensitive=False),
    help="Where a new group starts.",
)
@click.option("--produce", "produced", type=click.IntRange(min=1), metavar="N", help="Write N records, and check them.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    default=60_000,
    show_default=True,
    metavar="MS",
    help="With --produce: end when no message came for this time.",
)
@click.option(
    "--consumer.config",
    "consumer_config",
    type=click.Path(dir_okay=False, path_type=Path),
    hidden=True,
    help="The former --command-config.",
)
def verify(connection: Connection, **given: Any) -> None:
    """Consume and check, as kafka-verifiable-share-consumer does. The exit code is 1 if a check fails."""
    mode, pattern, strategy = given["acknowledgement_mode"].lower(), given["pattern"], given["offset_reset_strategy"]
    if pattern and mode == "auto":
        raise click.UsageError("--ack-pattern needs --acknowledgement-mode sync or async")
    if given["produced"]:
        if strategy is not None and strategy.lower() == "latest":
            raise click.UsageError("--produce needs the records from their start: not --offset-reset-strategy latest")
        strategy = "earliest"
    config = client_properties(given["consumer_config"]) if given["consumer_config"] else {}
    config |= connection.config()
    _print("startup_complete")
    if strategy is not None:
        with Admin(connection.shared_config()) as admin:
            admin.alter_group_configs(given["group_id"], {"share.auto.offset.reset": strategy.lower()})
        _print("offset_reset_strategy_set", offsetResetStrategy=strategy.lower())
    checked = _Checked()
    if given["produced"]:
        _write(connection, given["topic"], given["produced"], checked)
    explicit = "explicit" if pattern else "implicit"
    config |= {"group.id": given["group_id"], "share.acknowledgement.mode": explicit}
    with without_hints(), interrupted_by_signals(), ShareConsumer(config) as consumer:
        run = _Run(consumer, checked, mode, pattern, verbose=given["verbose"])
        consumer.subscribe([given["topic"]])
        try:
            run.consume(given["max_messages"], given["timeout_ms"] / 1000 if given["produced"] else None)
        except KeyboardInterrupt:
            _print("shutdown_requested")
        with suppress(KeyboardInterrupt):
            consumer.close()
    _print("shutdown_complete")
    if given["produced"]:
        _print("verdict", **checked.verdict())
        if not checked.ok:
            raise click.ClickException("the check has failed")


def _print(event: str, **fields: object) -> None:
    click.echo(json.dumps({"timestamp": int(time.time() * 1000), "name": event, **fields}, separators=(",", ":")))


def _write(connection: Connection, topic: str, count: int, checked: _Checked) -> None:
    """Write numbered records, and note their places. KafkaException: one is not written."""
    from shareq.producer import Producer  # at their use: most runs write nothing
    from shareq.tools.sender import Sender

    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            checked.produced.add((message.partition() or 0, message.offset() or 0))

    with Producer(connection.shared_config()) as producer:
        sender = Sender(producer)
        for number in range(count):
            sender.send(topic, b"%d" % number, on_delivery=delivered)
    if failures:
        raise KafkaException(failures[0])
    _print("records_produced", count=count)


class _Checked:
    """What is known of each record. `finished`: the accepted and rejected ones, with the type. `again`: deliveries
    after that, and deliveries whose count is lower than that of an earlier one."""

    def __init__(self) -> None:
        self.produced: set[PartitionOffset] = set()
        self.counts: dict[PartitionOffset, int] = {}
        self.finished: dict[PartitionOffset, AcknowledgeType] = {}
        self.again: list[PartitionOffset] = []
        self.acknowledged: Counter[str] = Counter()

    def delivered(self, place: PartitionOffset, delivery_count: int) -> bool:
        """Note a delivery. True if the record came before."""
        before = self.counts.get(place)
        if place in self.finished or (before is not None and delivery_count < before):
            self.again.append(place)
        self.counts[place] = delivery_count
        return before is not None

    def settled(self, place: PartitionOffset, kind: AcknowledgeType) -> None:
        self.acknowledged[kind.name.lower()] += 1
        if kind in (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT):
            self.finished[place] = kind

    @property
    def complete(self) -> bool:
        return self.produced <= self.finished.keys()

    @property
    def ok(self) -> bool:
        return self.complete and not self.again

    def verdict(self) -> dict[str, object]:
        return {
            "ok": self.ok,
            "produced": len(self.produced),
            "delivered": len(self.produced & self.counts.keys()),
            "finished": len(self.produced & self.finished.keys()),
            "deliveredAgain": len(self.again),
            "ackTypeCounts": dict(sorted(self.acknowledged.items())),
        }


class _Run:
    def __init__(
        self,
        consumer: ShareConsumer,
        checked: _Checked,
        mode: str,
        pattern: list[AcknowledgeType],
        *,
        verbose: bool,
    ) -> None:
        self._consumer = consumer
        self._checked = checked
        self._mode = mode
        self._pattern = pattern
        self._verbose = verbose
        self._kinds: dict[PartitionOffset, AcknowledgeType] = {}
        self._successes = 0
        consumer.set_acknowledgement_commit_callback(self._acknowledged)

    def consume(self, max_messages: int, timeout_s: float | None) -> None:
        """Until so many messages are acknowledged, or, with a time-out, until every produced record is finished."""
        last = time.monotonic()
        while not 0 <= max_messages <= self._successes:
            messages = self._consumer.poll(POLL_S)
            if messages:
                last = time.monotonic()
                self._received(list(messages))
                if self._mode == "sync":
                    self._consumer.commit_sync()
                elif self._mode == "async":
                    self._consumer.commit_async()
            if timeout_s is not None and (self._checked.complete or time.monotonic() - last > timeout_s):
                return

    def _received(self, messages: list[Message]) -> None:
        offsets: dict[tuple[str, int], list[int]] = {}
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            offsets.setdefault((message.topic() or "", partition), []).append(offset)
            came_before = self._checked.delivered((partition, offset), message.delivery_count() or 0)
            kind = AcknowledgeType.ACCEPT
            if self._pattern:
                kind = kind if came_before else self._pattern[offset % len(self._pattern)]
                self._consumer.acknowledge(message, kind)
            self._kinds[partition, offset] = kind
            if self._verbose:
                key, value = (None if data is None else data.decode(errors="replace") for data in _contents(message))
                place = {"topic": message.topic(), "partition": partition, "offset": offset}
                _print("record_data", key=key, value=value, **place)
        _print("records_consumed", count=len(messages), partitions=[_part(*place, offsets[place]) for place in offsets])

    def _acknowledged(self, results: dict[TopicPartition, set[int]], failure: KafkaException | None) -> None:
        count = sum(len(offsets) for offsets in results.values())
        parts = [_part(place.topic, place.partition, sorted(offsets)) for place, offsets in results.items()]
        error = {} if failure is None else {"error": failure.error.str()}
        _print("offsets_acknowledged", count=count, partitions=parts, **error, success=failure is None)
        if failure is None:
            self._successes += count
            for place, offsets in results.items():
                for offset in offsets:
                    self._checked.settled((place.partition, offset), self._kinds[place.partition, offset])


def _contents(message: Message) -> tuple[bytes | None, bytes | None]:
    return message.key(), message.value()


def _part(topic: str, partition: int, offsets: list[int]) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "count": len(offsets), "offsets": offsets}
