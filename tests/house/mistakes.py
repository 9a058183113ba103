"""Mistakes of newcomers, and what each is answered: a sentence that names the mistake, and what is right.

`python -m tests.house.mistakes` makes all of them and prints the table: the seconds until the answer, the mistake, the
answer; it fails where one comes after LATEST_S. An answer is the message of an exception, the error of a command, or
the first warning in the log of a call that goes on trying. `PYTHON` are lines of Python, `COMMANDS` those of a shell.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple, Self

from click.testing import CliRunner

import shareq
from shareq import AclBinding, Admin, Cluster, NewTopic, Producer, ShareConsumer, ledger, raster, view
from shareq.cli import main
from shareq.extras import require
from shareq.sim import Scenario
from shareq.spark import sweep
from shareq.spark.options import parse
from shareq_widgets import control_room, race, record, strip, what_if
from tests.house import wrong_addresses
from tests.house.unhindered import clock

LATEST_S = 3

NAMES = {
    "AclBinding": AclBinding, "Admin": Admin, "Cluster": Cluster, "LocalKafka": shareq.kafka.LocalKafka,
    "NewTopic": NewTopic, "Producer": Producer, "Scenario": Scenario, "ShareConsumer": ShareConsumer,
    "control_room": control_room, "lag_plot": shareq.lag_plot, "ledger": ledger, "monitor": shareq.monitor,
    "observe": shareq.observe, "parse": parse, "race": race, "raster": raster, "record": record, "require": require,
    "strip": strip, "sweep": sweep, "tap": shareq.tap, "view": view, "what_if": what_if,
}  # fmt: skip

OF_README = (
    ("consumer({}, ['oders']).poll(60)", "poll is empty: topic 'oders' does not exist; create it, or check its name"),
    ("consumer({}, ['my orders']).poll(60)", "poll is empty: topic 'my orders': must be 1 to 249 characters of "),
    ("observe('127.0.0.1:9092', '')", "group='': must be a non-empty name"),
    ("require('spark', 'no_such_package')", "the package no_such_package is missing: pip install "),
    ("ShareConsumer({'bootstrap.servers': 'inproc://old', 'group.id': 'g'})", "no cluster is running at inproc://old"),
    ("sweep({'lock_duration': [5_000]}, seeds=5)", "grid['lock_duration']: must be one of records, partitions, "),
    ("sweep({'lock_duration_ms': 5_000}, seeds=5)", "grid['lock_duration_ms']=5000: must be a list of values"),
    ("Scenario(crash_rate=2)", "crash_rate=2: must be a number in 0..0.9"),
)  # fmt: skip

OF_CLUSTER = (
    ("Cluster(brokers=0)", "brokers=0: must be 1..100"),
    ("Cluster(clock='real')", "clock='real': must be 'virtual', 'wall' or a factor in 0.001..1000"),
    ("Cluster(config={'share.record.lock.duration.ms': 5000})", "use cluster.configure_group(group_id, "),
    ("Cluster(config={'num.partitons': 3})", 'unknown broker configuration; did you mean "num.partitions"?'),
    ("Cluster(config={'num.partitions': 'many'})", "num.partitions='many': must be a whole number, >= 1"),
    ("Cluster(config='my.properties')", "config='my.properties': must be a dict of configurations by their keys"),
    ("Cluster(journal='run.jsonl')", "journal='run.jsonl': must be True, False, or the number of newest events"),
    ("Cluster(racks='ab')", "racks='ab': must be 3, one for each broker, each a name or None"),
    ("Cluster(persister='disk')", "must be one of state-topic, compacted-topic, control-records, none"),
    ("Cluster(backend='localhost')", "'localhost' is not host:port"),
    ("cluster.create_topic('orders')", "topic 'orders' already exists"),
    ("cluster.create_topic('a b')", "topic 'a b': must be 1 to 249 characters of "),
    ("cluster.create_topic(5)", "name=5: must be the name of a topic"),
    ("cluster.create_topic('x', 0)", "topic 'x': 0 partitions: must be 1 or more"),
    ("cluster.create_topic('x', '3')", "partitions='3': must be a whole number"),
    ("cluster.create_topic('x', replication_factor=5)", "replication factor 5: must be 1..3, there are 3 brokers"),
    ("cluster.jump_clock(-1)", "ms=-1: must be a whole number in 0..31536000000"),
    ("cluster.delay_appends('x', 5)", "topic='x': must be a topic, or one of __consumer_offsets, "),
    ("cluster.create_topic('x', configs={'retention': 5})", 'did you mean "retention.ms"?'),
    ("cluster.configure_group('payments', {'lock': 5})", "lock='5': unknown group configuration"),
    ("cluster.configure_group('payments', 'earliest')", "configs='earliest': must be a dict of configurations by "),
    ("cluster.configure_group('payments', {'share.record.lock.duration.ms': '5 s'})",
     "share.record.lock.duration.ms='5 s': must be a whole number, >= 1000"),
    ("cluster.kill_broker(7)", "broker_id=7: must be one of [0, 1, 2]"),
    ("cluster.start_broker(1)", "broker 1 is running already"),
    ("cluster.crash('B')", "'B' is not an open client of "),
    ("cluster.advance(-1)", "ms=-1: must be >= 0, time does not run backwards"),
    ("cluster.advance('5 s')", "ms='5 s': must be a number of milliseconds"),
    ("cluster.serve()", "use Cluster(clock='wall'), or a factor such as clock=10.0"),
    ("cluster.bootstrap_servers_as('')", "user='': must be the name of a user, such as alice"),
    ("LocalKafka(2)", "brokers=2: must be 1 or 3"),
    ("LocalKafka(config={'listeners': 'PLAINTEXT://:9092'})", "must not be set, a local Kafka sets it itself"),
    ("LocalKafka(timeout=-1)", "timeout=-1: must be a number of seconds above 0"),
    ("LocalKafka().bootstrap_servers", "this local Kafka is not running: call start(), or use it in a `with` block"),
)  # fmt: skip

OF_CLIENTS = (
    ("ShareConsumer('localhost:9092')", "expected configuration dict, not str"),
    ("ShareConsumer({'bootstrap.servers': servers})", "group.id must be set"),
    ("ShareConsumer({'group.id': 'g'})", "bootstrap.servers must be set: inproc://name or host:port"),
    ("ShareConsumer({'group.id': 'g', 'bootstrap.servers': ['a:1']})", "must be any text, with commas between several"),
    ("ShareConsumer({'group.id': 'g', 'bootstrap.servers': 'localhost'})", "'localhost' is not host:port"),
    ("consumer({'auto.offset.reset': 'earliest'})", "share.auto.offset.reset is a configuration of the group"),
    ("consumer({'enable.auto.commit': True})", "not applicable to a share consumer: enable.auto.commit"),
    ("consumer({'share.record.lock.duration.ms': 5000})", "is a configuration of the group: Admin."),
    ("consumer({'max.poll.record': 5})", 'did you mean "max.poll.records"?'),
    ("consumer({'max.poll.records': 'all'})", "max.poll.records='all': must be a whole number, >= 1"),
    ("consumer({'share.acknowledgement.mode': 'manual'})", "'manual': must be implicit or explicit"),
    ("consumer().subscribe('orders')", "expected a list of topics, not str"),
    ("consumer().poll(1)", "Consumer is not subscribed to any topics"),
    ("consumer().poll('5 s')", "timeout must be a real number of seconds, not str"),
    ("closed.poll(1)", "Share consumer closed"),
    ("polled.acknowledge(message)", "acknowledging needs share.acknowledgement.mode=explicit, and it is implicit"),
    ("explicit.acknowledge('a record')", "argument 1 must be a Message, not str"),
    ("explicit.acknowledge(message, 'acept')", "ack_type='acept': must be ACCEPT (1), RELEASE (2), REJECT (3) or "),
    ("explicit.acknowledge(message, 7)", "ack_type=7: must be ACCEPT (1), RELEASE (2), REJECT (3) or RENEW (4)"),
    ("explicit.acknowledge(message)", "is not in flight: no poll returned it, it was acknowledged and sent already"),
    ("producer.produce('orders', {'a': 1})", "value must be bytes, str or None, not dict"),
    ("producer.produce(['orders'], 'a')", "topic must be a str, not list"),
    ("producer.produce('orders', 'a', partition='0')", "partition must be an int, not str ('0')"),
    ("producer.produce('orders', 'a', partition=9); producer.flush()", "topic 'orders' has no partition 9"),
    ("producer.produce('a b', 'a'); producer.flush()", "topic 'a b': must be 1 to 249 characters of "),
    ("producer.produce('oders', 'a'); producer.flush(60)", "topic 'oders' does not exist: its records wait; "),
    ("producer.produce('orders', 'a', headers='b')", "headers must be a dict or a list of (name, value) pairs, not "),
    ("producer.produce('orders', b'a' * 2_000_000)", "a record of 2000016 bytes: message.max.bytes is 1000000"),
    ("producer.begin_transaction()", "transactions need transactional.id in the configuration"),
    ("Producer({'bootstrap.servers': servers, 'transactional.id': 't'}).begin_transaction()",
     "uninitialized: call init_transactions() first"),
    ("Producer({'bootstrap.servers': servers, 'ack': 1})", 'did you mean "acks"?'),
    ("Producer({'bootstrap.servers': servers, 'compression.type': 'zip'})", "must be none, gzip, snappy, lz4, zstd"),
    ("admin.create_topics('x')", "new_topics must be a list, not 'x'"),
    ("admin.create_topics([NewTopic('x', '3')])", "num_partitions of topic 'x' must be an int, not str ('3')"),
    ("admin.describe_topics(['oders']).check()", "topic 'oders' does not exist"),
    ("admin.describe_share_groups(['payment']).check()", "Group payment not found."),
    ("admin.delete_share_groups(['payments']).check()", "group 'payments' has members: close its consumers first"),
    ("admin.list_groups(types=['shared'])", "type='shared': must be one of classic, consumer, share, streams"),
    ("admin.list_groups(states=['Stabel'])", "state='Stabel': must be one of Empty, Stable, "),
    ("admin.list_topics(timeout=-1)", "timeout=-1: must not be negative"),
    ("admin.alter_group_configs('payments', {'record.lock.duration.ms': 5000})",
     'did you mean "share.record.lock.duration.ms"?'),
    ("admin.create_acls([AclBinding('topic', 'orders', 'literal', 'User:a', '*', 'reed', 'allow')])",
     "'reed' is no AclOperation: must be one of "),
    ("tap(servers)", "is an address within this process, and here it must be host:port"),
    ("tap(9092)", "bootstrap.servers=9092: must be a text, host:port,..."),
    ("monitor(servers, 5)", "groups=5: must be one or more non-empty names, or None for all"),
    ("parse({'subscribe': 'orders', 'group.id': 'g'})", "option 'kafka.bootstrap.servers' must be set"),
    ("parse({**source, 'kafka.bootstrap.servers': 'localhost'})", "kafka.*: bootstrap.servers='localhost': "),
    ("parse({**source, 'startingOffsets': 'earliest'})", "unknown option 'startingOffsets': known are "),
    ("parse({**source, 'maxRecordsPerBatch': '0'})", "option 'maxRecordsPerBatch'='0': must be a whole number, 1 or "),
    ("parse({**source, 'onFailure': 'skip'})", "option 'onFailure'='skip': must be one of release, reject"),
)  # fmt: skip

OF_VIEWS = (
    ("view(cluster, 'payments', 'oders')", "topic='oders': the journal has no such topic, it has 'orders'"),
    ("view(cluster, 'payment', 'orders')", "group='payment': the journal has no such group, it has 'payments'"),
    ("view(cluster, 'payments', 'orders', 9)", "partition=9: topic 'orders' has the partitions 0"),
    ("ledger(cluster, 'payment', 'orders')", "group='payment': the journal has no such group, it has 'payments'"),
    ("raster(cluster, 'payment', 'orders')", "group='payment': the journal has no such group, it has 'payments'"),
    ("strip(cluster, group='payments', topic='orders', partition=9)", "topic 'orders' has the partitions 0"),
    ("strip(cluster, group='payments', topic='orders').save('run.pdf')", "must end in one of .svg, .png, .html, not "),
    ("record(cluster, group='payments', topic='orders', offset='x')", "offset='x': must be a whole number from 0"),
    ("race(workers=0)", "workers=0: must be a whole number in 1..12"),
    ("race(slow_share=5)", "slow_share=5: must be a number in 0..1"),
    ("what_if(cluster, group='payment')", "group='payment': the journal has no such group, it has 'payments'"),
    ("control_room(cluster, group='payments')", "missing 1 required keyword-only argument: 'topic'"),
    ("room('oders')", "topic='oders': the cluster has no such topic, it has 'orders'"),
    ("room('orders', theme='blue')", "theme must be one of auto, light, dark, not 'blue'"),
    ("steering().do('produse', 5)", "'produse': must be one of produce"),
    ("steering().do('produce', -3)", "produce=-3: must be a whole number in 1..100000"),
    ("steering().do('kill broker', 0)", "must be one of kill broker 0, kill broker 1, kill broker 2"),
    ("steering().do('add consumer', 'acept')", "must be one of 'accept', "),
    ("typed('produce', -5)", "-5: must be a whole number in 1..100000"),
    ("typed('share.record.lock.duration.ms of payments', 5)", "5: must be >= 1000"),
    ("room('orders').begin_story('crash')", "the story must be one of poison, crashed consumer, "),
)

PYTHON = (*OF_README, *OF_CLUSTER, *OF_CLIENTS, *OF_VIEWS, *wrong_addresses.PYTHON)

HERE = "--bootstrap-server HERE"
COMMANDS = (
    ("grups", 'No such command \'grups\'; did you mean "groups"?'),
    ("serve --port 70000", "'--port': 70000 is not in the range 0<=x<=65535"),
    ("serve --topic orders:many", "'orders:many': must be name or name:partitions"),
    ("serve --port 0 --config num.partitons=3", 'unknown broker configuration; did you mean "num.partitions"?'),
    ("serve --config num.partitions", "'num.partitions': must be key=value"),
    ("serve --port 0 --persister disk", "persister='disk': must be one of state-topic, compacted-topic, "),
    ("serve --port 0 --backend localhost", "'localhost' is not host:port"),
    ("serve --port 0 --sasl-users missing", "missing: No such file or directory"),
    ("serve --port 0 --journal no/such/run.jsonl", "no/such/run.jsonl: No such file or directory"),
    ("serve --port 0 --command-config client.properties", "are possible only with --backend"),
    ("serve --listener 127.0.0.1:0", "must be NAME://host:port, such as SASL_SSL://127.0.0.1:9093"),
    ("show localhost", "SOURCE='localhost': must be host:port,... or the path of a .jsonl or .parquet file"),
    ("show missing.jsonl --no-browser", "missing.jsonl: No such file or directory"),
    ("show no-journal.jsonl --no-browser", "no-journal.jsonl, line 1: not a journal: the first line must have "),
    ("observe HERE", "name one or more groups, or give --all"),
    ("observe HERE payment --once", "no such share group at HERE: payment"),
    ("observe HERE payments --interval 0", "'--interval': 0.0 is not in the range x>=0.1"),
    ("tap HERE --port 70000", "'--port': 70000 is not in the range 0<=x<=65535"),
    ("tap HERE --command-config bad.properties", "bad.properties: not of the form key=value: line 1"),
    ("kafka start --brokers 2", "'2' is not one of '1', '3'"),
    ("kafka start --config num.partitions", "--config num.partitions: must be KEY=VALUE"),
    ("kafka start --config node.id=7", "node.id='7': must not be set, a local Kafka sets it itself"),
    ("kafka run kafka-topic", "tool='kafka-topic': must be one of kafka-acls, "),
    ("groups", "Missing option '--bootstrap-server'"),
    (f"groups {HERE}", "one action is needed: --list, --describe, --delete, --reset-offsets, --delete-offsets"),
    ("groups --list --bootstrap-server localhost", "'localhost' is not host:port"),
    (f"groups --list {HERE} --state Stabel", "'stabel' must be one of Empty, Stable, Dead"),
    (f"groups --describe --group payment {HERE}", "GROUP_ID_NOT_FOUND: Group payment not found."),
    (f"groups --reset-offsets --group payments --topic oders --to-earliest --execute {HERE}",
     "topic 'oders' does not exist"),
    (f"groups --list {HERE} --command-config missing", "missing: No such file or directory"),
    (f"groups --list {HERE} --command-config client.properties", 'did you mean "security.protocol"?'),
    (f"topics --create --topic orders {HERE}", "topic 'orders' already exists"),
    (f"topics --create --topic x --config retention.ms {HERE}", "--config retention.ms: must be in the format"),
    (f"topics --create --topic x --config retention=5 {HERE}", 'did you mean "retention.ms"?'),
    (f"topics --describe --topic oders {HERE}", "Topic 'oders' does not exist"),
    (f"configs --describe --entity-type topik --entity-name orders {HERE}", "--entity-type topik: must be one of "),
    (f"configs --alter --group payments --add-config share.record.lock.duration=5 {HERE}",
     'did you mean "share.record.lock.duration.ms"?'),
    (f"configs --alter --topic orders --add-config cleanup.policy=shred {HERE}", "must be a list of compact, delete"),
    (f"acls --add --allow-principal alice --operation read --topic orders {HERE}", "such as User:alice"),
    (f"acls --add --allow-principal User:a --operation reed --topic orders {HERE}", "must be one of ALL, READ, "),
    (f"consume --topic oders --timeout-ms 1000 {HERE}", "topic 'oders' does not exist; create it, or check its name"),
    (f"consume --topic 'my orders' --timeout-ms 10000 {HERE}", "topic 'my orders': must be 1 to 249 characters of "),
    (f"consume --topic orders --group '' {HERE}", "--group '': must be the name of a share group"),
    (f"consume --topic orders --formatter-property print.kee=true {HERE}", "which has print.timestamp, "),
    (f"consume --topic orders --consumer-property max.pol.records=5 {HERE}", 'did you mean "max.poll.records"?'),
    (f"produce --topic 'my orders' {HERE}", "topic 'my orders': must be 1 to 249 characters of "),
    (f"produce --topic orders --reader-property parse.kee=true {HERE}", "is not a property of lines, which has "),
    (f"produce --topic orders --reader-property parse.key=true {HERE}", "No key separator found on line number 1"),
    (f"produce --topic orders --compression-codec zip {HERE}", "must be none, gzip, snappy, lz4, zstd"),
    (f"perf produce --topic orders {HERE}", "Missing option '--num-records'"),
    (f"perf consume --topic oders --num-records 1 --timeout 100 {HERE}", "topic 'oders' does not exist; create it"),
    (f"verify --topic orders --group-id g --ack-pattern acept --acknowledgement-mode sync {HERE}",
     "'acept': must be one of accept, release, reject, renew"),
    (f"verify --topic oders --group-id g --produce 1 --command-property topic.metadata.propagation.max.ms=100 {HERE}",
     "topic 'oders' does not exist"),
    (f"dlq show payments {HERE}", "has no dead-letter queue: errors.deadletterqueue.topic.name is not set"),
    (f"browse --group payments --topic oders {HERE}", "topic 'oders' does not exist"),
    (f"browse --group payments --topic orders {HERE}", "browsing needs brokers of shareq with "),
    ("sheet share-groups.pdf", "path must end in one of .svg, .png, not 'share-groups.pdf'"),
    ("sheet no/such/sheet.svg", "no/such/sheet.svg: cannot write the view: No such file or directory"),
    ("pipeline run missing.jsonl --out out", "missing.jsonl does not exist"),
    ("pipeline run no-journal.jsonl --out bad.properties", "--out bad.properties: must be a folder, and is a file"),
    ("what-if no/such.json", "no/such.json: there is no folder no"),
    ("what-if mine.json --workload 'orders: consumer=40'", "consumer must be one of records, partitions, consumers, "),
    *wrong_addresses.COMMANDS,
)  # fmt: skip


class Answer(NamedTuple):
    """`error`: the exception, or the exit code of a command."""

    text: str
    seconds: float
    error: object


class _FirstWarning(BaseException):
    """Ends a call that goes on trying."""


class _Warnings(logging.Handler):
    """Keeps warnings, and the time of the first one; `ending`: raises it, in the thread that logs it."""

    def __init__(self, *, ending: bool) -> None:
        super().__init__(logging.WARNING)
        self._ending = ending
        self.texts: list[str] = []
        self.first = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or clock()
        self.texts.append(record.getMessage())
        if self._ending:
            raise _FirstWarning(record.getMessage())

    def __enter__(self) -> Self:
        logging.getLogger("shareq").addHandler(self)
        return self

    def __exit__(self, *exc: object) -> None:
        logging.getLogger("shareq").removeHandler(self)


class Stage:
    """A cluster in this process on which consumers have polled, and a served one."""

    def __init__(self, served: str, silent: str) -> None:
        self._served, self._silent = served, silent
        self.cluster = cluster = Cluster(brokers=3)
        cluster.create_topic("orders")
        cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
        self.address = {"bootstrap.servers": cluster.bootstrap_servers}
        producer = Producer(self.address)
        producer.produce("orders", b"")
        producer.flush()
        polled = self.consumer({}, ["orders"])
        (message,) = polled.poll(6)
        closed = self.consumer()
        closed.close()
        source = {"kafka.bootstrap.servers": "a:1", "subscribe": "orders", "group.id": "g"}
        made = {"cluster": cluster, "servers": cluster.bootstrap_servers, "producer": producer, "polled": polled}
        made |= {"message": message, "closed": closed, "admin": Admin(self.address), "source": source, "SILENT": silent}
        made |= {"silenced": Producer({"bootstrap.servers": silent}), "CLOSED": wrong_addresses.CLOSED}
        made |= {"explicit": self.consumer({"share.acknowledgement.mode": "explicit"})}
        calls = {"consumer": self.consumer, "room": self.room, "steering": self.steering, "typed": self.typed}
        self.names: dict[str, Any] = {**NAMES, **made, **calls}

    def consumer(self, more: dict[str, Any] | None = None, topics: list[str] | None = None) -> ShareConsumer:
        made = ShareConsumer({**self.address, "group.id": "payments", **(more or {})})
        if topics:
            made.subscribe(topics)
        return made

    def room(self, topic: str, **more: Any) -> Any:
        return control_room(self.cluster, group="payments", topic=topic, **more)

    def steering(self) -> Any:
        return self.room("orders").panel.steering

    def typed(self, name: str, value: int) -> None:
        """Type a number into a field of the control room. ValueError: what stands below the field then."""
        panel = self.room("orders").panel
        panel._folds[panel.steering[name].area].selected_index = 0
        row = panel._rows[name]
        _, _, field, *_ = row.widget.children
        field.value = value
        row._button.click()
        if refusal := row.widget.children[-1].value:
            raise ValueError(unescape(re.sub("<[^>]*>", "", refusal)))

    def python(self, mistake: str) -> Answer:
        """The answer to a line of Python; AssertionError if it has none."""
        begun = clock()
        try:
            with _Warnings(ending=True):
                exec(mistake, dict(self.names))
        except (Exception, _FirstWarning) as error:
            return Answer(self._named(str(error)), clock() - begun, error)
        raise AssertionError(f"{mistake} has no answer")

    def command(self, mistake: str) -> Answer:
        """The answer to a command: all that it logs and writes."""
        begun = clock()
        typed = mistake.replace("HERE", self._served).replace("SILENT", self._silent)
        with _Warnings(ending=mistake in wrong_addresses.PATIENT) as logged:
            try:
                result = CliRunner().invoke(main, shlex.split(typed), input="a line\n")
            except _FirstWarning as first:
                return Answer(self._named(str(first)), logged.first - begun, None)
        seconds = (logged.first or clock()) - begun
        text = self._named("\n".join([*logged.texts, result.output]))
        return Answer(text, seconds, result.exit_code if isinstance(result.exception, SystemExit) else result.exception)

    def _named(self, text: str) -> str:
        return text.replace(self._served, "HERE").replace(self._silent, "SILENT")


@contextmanager
def opened_stage() -> Iterator[Stage]:
    """A stage, in a folder of its own with the files that the commands name."""
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(brokers=1, clock="wall") as cluster,
        cluster.serve() as server,
        wrong_addresses.silent_address() as silent,
    ):
        cluster.create_topic("orders")
        os.chdir(folder)
        Path("bad.properties").write_text("security.protocol SSL\n")
        Path("client.properties").write_text("securty.protocol=SSL\n")
        Path("no-journal.jsonl").write_text("{}\n")
        try:
            yield Stage(server.bootstrap_servers, silent)
        finally:
            os.chdir(before)


def _sentence(answer: str) -> str:
    """The line of an answer that explains it: a warning is the first one."""
    lines = [line for line in answer.splitlines() if line.strip()]
    usage = lines[0].startswith(("Usage: ", "Starting "))
    return next((line for line in lines if line.startswith("Error: ")), lines[0]) if usage else lines[0]


def print_table() -> None:
    """Make every mistake, and print the seconds until its answer, the mistake and the answer."""
    slowest, count = 0.0, 0
    with opened_stage() as stage:
        for mistakes, make in ((PYTHON, stage.python), (COMMANDS, stage.command)):
            for mistake, _ in mistakes:
                answer = make(mistake)
                slowest, count = max(slowest, answer.seconds), count + 1
                shown = f"shareq {mistake}" if make == stage.command else mistake
                print(f"{answer.seconds:5.2f} s  {shown}\n         {_sentence(answer.text)}")
    print(f"\n{count} mistakes, the slowest answer after {slowest:.2f} s")
    if slowest > LATEST_S:
        raise SystemExit(f"an answer may take {LATEST_S} s")


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        print_table()
