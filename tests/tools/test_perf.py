"""`shareq perf` beside Kafka's performance tools on the same cluster."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from shareq import Admin, NewTopic, Producer, cli
from shareq.tools.perf.latencies import Latencies
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, configure
from tests.tools.java_tools import JavaTools
from tests.tools.side_by_side import ON_BOTH, Beside

Fresh = Callable[[str], str]


@pytest.fixture
def topic(server: Reachable, fresh: Fresh) -> str:
    name = fresh("orders")
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(name, 1, 1)]).check()
        configure(admin, name, {"share.auto.offset.reset": "earliest"})
        configure(admin, f"{name}-b", {"share.auto.offset.reset": "earliest"})
    return name


def perf(server: Reachable, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli.main, ["perf", *args, "--bootstrap-server", server.bootstrap_servers])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def values(server: Reachable, topic: str) -> list[str]:
    """The values of the topic's records."""
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        spans = [(0, 1 << 40)]
        reads = admin.read_batches({(topic, 0): spans})
        return [(record.value or b"").decode() for read in reads for record in read.records(spans)]


def form(text: str) -> list[str]:
    """The lines with numbers replaced by their numbers of decimals."""
    dates = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", "DATE", text)
    return re.sub(r"\d+(\.(\d+))?", lambda found: f"<{len(found[2] or '')}>", dates).splitlines()


# ---- produce ---------------------------------------------------------------------------------------------------------


@ON_BOTH
def test_the_lines_of_a_producer_have_kafkas_form(server: Reachable, topic: str, java_tools: JavaTools) -> None:
    sizes = ("--num-records", "1000", "--record-size", "100", "--throughput", "-1", "--warmup-records", "100")
    java = Beside(server.bootstrap_servers, java_tools, "", "kafka-producer-perf-test")
    theirs = java.java("--topic", topic, *sizes).stdout
    ours = perf(server, "produce", "--topic", topic, *sizes)
    assert form(ours) == form(theirs)
    assert ours.splitlines()[1].startswith("1000 records sent, ")
    assert ours.splitlines()[2].startswith("900 steady state records sent, ")
    written = values(server, topic)
    assert len(written) == 2000
    assert all(re.fullmatch(r"[A-Z]{100}", value) for value in written)


@ON_BOTH
def test_payloads(server: Reachable, topic: str, tmp_path: Path) -> None:
    limits = ("produce", "--topic", topic, "--num-records", "5", "--throughput", "-1")
    perf(server, *limits, "--payload-monotonic")
    assert values(server, topic) == ["0", "1", "2", "3", "4"]
    (file := tmp_path / "payloads").write_text("a b;c;")
    shown = perf(server, *limits, "--payload-file", str(file), "--payload-delimiter", ";")
    assert shown.splitlines()[:2] == [f"Reading payloads from: {file}", "Number of messages read: 2"]
    assert {*values(server, topic)[5:]} <= {"a b", "c"}
    file.write_text("")
    assert "File does not exist or empty file" in perf(server, *limits, "--payload-file", str(file), code=1)


def test_a_rate_may_be_a_fraction(server: Reachable, topic: str) -> None:
    """Each record is due after the time of those before it, so the run takes at least the sum."""
    args = ("--num-records", "4", "--payload-monotonic", "--throughput", "12.5", "--json")
    (row,) = json.loads(perf(server, "produce", "--topic", topic, *args))
    assert (row["records"], row["steady_state"]) == (4, False)
    assert row["records_per_sec"] <= 12.5


@ON_BOTH
def test_records_are_written_in_transactions(server: Reachable, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction ends with the first record that is sent after its duration."""
    commits: list[object] = []
    commit = Producer.commit_transaction

    def counted(self: Producer, timeout: float = -1) -> None:
        commits.append(self)
        commit(self, timeout)

    monkeypatch.setattr(Producer, "commit_transaction", counted)
    args = ("--num-records", "3", "--payload-monotonic", "--throughput", "20", "--transaction-duration-ms", "1")
    perf(server, "produce", "--topic", topic, *args)
    assert len(commits) == 2
    assert values(server, topic) == ["0", "1", "2"]


def test_records_that_are_not_written_are_an_error(server: Reachable, topic: str) -> None:
    args = ("--num-records", "2", "--record-size", "2000", "--throughput", "-1")
    failure = perf(server, "produce", "--topic", topic, *args, "--command-property", "message.max.bytes=1000", code=1)
    assert "records that were not written: 2 (a record of 20" in failure


def test_latencies_are_those_of_the_records(seed: int) -> None:
    rng = random.Random(seed)
    found = [rng.randrange(100) for _ in range(400)]
    lines: list[str] = []
    stats = Latencies(400, 0, 100, lines.append, steady=True)
    for number, latency in enumerate(found, 1):
        stats.add(latency, 10, number)
    assert stats.percentiles() == {
        name: sorted(found)[int(part * 400)]
        for name, part in {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}.items()
    }
    assert len(lines) == 5
    first = found[:100]
    assert lines[0] == "In steady state."
    assert lines[1].endswith(f"{sum(first) / 100:.1f} ms avg latency, {max(first):.1f} ms max latency.")
    assert lines[2].startswith("100 records sent, 1000.0 records/sec (0.01 MB/sec)")
    assert f"{sum(found) / 400:.2f} ms avg latency, {max(found):.2f} ms max" in stats.summary(400)


def test_percentiles_of_many_records_are_those_of_a_sample() -> None:
    stats = Latencies(1_000_000, 0, 1 << 40, None)
    for number in range(100):
        stats.add(number % 2, 0, 0)
    assert set(stats.percentiles().values()) == {0}


# ---- consume ---------------------------------------------------------------------------------------------------------


def fill(server: Reachable, topic: str, count: int) -> None:
    with Producer({"bootstrap.servers": server.bootstrap_servers}) as producer:
        for _ in range(count):
            producer.produce(topic, b"v" * 100, b"k" * 4, 0)
        assert producer.flush(PATIENCE_S) == 0


@ON_BOTH
def test_the_columns_of_consumers_are_kafkas(server: Reachable, topic: str, java_tools: JavaTools) -> None:
    fill(server, topic, 1000)
    limits = ("--topic", topic, "--num-records", "1000", "--timeout", "60000", "--show-consumer-stats")
    java = Beside(server.bootstrap_servers, java_tools, "", "kafka-share-consumer-perf-test")
    theirs = java.java(*limits, "--group", f"{topic}-b").stdout
    ours = perf(server, "consume", *limits, "--group", topic)
    assert form(ours) == form(theirs)
    heads, _, total = ours.splitlines()
    row = dict(zip(heads.split(", "), total.split(", "), strict=True))
    assert row["data.consumed.in.nMsg"] == "1000"
    assert row["data.consumed.in.MB"] == f"{104_000 / (1 << 20):.4f}"


@ON_BOTH
def test_consumers_share_the_records(server: Reachable, topic: str) -> None:
    """Each read record is accepted."""
    fill(server, topic, 100)
    limits = ("--topic", topic, "--num-records", "100", "--group", topic, "--timeout", "60000", "--threads", "3")
    *consumers, total = json.loads(perf(server, "consume", *limits, "--show-consumer-stats", "--json"))
    assert [row["client_id"][-9:] for row in consumers] == ["-client-1", "-client-2", "-client-3"]
    assert sum(row["data.consumed.in.nMsg"] for row in consumers) == total["data.consumed.in.nMsg"] == 100
    with Admin({"bootstrap.servers": server.bootstrap_servers}) as admin:
        assert admin.lag(topic).total == 0


def test_progress_and_metrics_are_printed(server: Reachable, topic: str) -> None:
    fill(server, topic, 3)
    limits = ("--topic", topic, "--num-records", "3", "--group", topic, "--timeout", "60000", "--date-format", "yyyy")
    details = ("--hide-header", "--show-detailed-stats", "--reporting-interval", "1", "--print-metrics")
    lines = perf(server, "consume", *limits, *details).splitlines()
    assert re.fullmatch(r"\d{4}, \d{4}, 0\.0003, [\d.]+, [\d.]+, 3, \d+ for share consumer 1", lines[0])
    assert re.fullmatch(r"records-consumed-total +: 3\.000", next(s for s in lines if "records-consumed-total" in s))


def test_too_few_records_are_an_error(server: Reachable, topic: str) -> None:
    args = ("--topic", topic, "--num-records", "1", "--group", topic, "--timeout", "10")
    assert "Exiting before consuming the expected number of records" in perf(server, "consume", *args, code=1)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["produce", "--record-size", "1", "--payload-monotonic"], "only one is possible of --record-size"),
        (["produce"], "one payload is needed: --record-size, --payload-file, --payload-monotonic"),
        (["produce", "--record-size", "1", "--warmup-records", "1"], "must be less than --num-records"),
        (["produce", "--record-size", "1", "--throughput", "0"], "must be a number of records a second above 0, or -1"),
        (["produce", "--record-size", "1", "--throughput", "nan"], "must be a number of records a second above 0"),
        (["produce", "--record-size", "1", "--print-metrics"], "shareq's producer has no metrics"),
        (["consume", "--date-format", "EEE"], "may have the letters yyyy, MM, dd, HH, mm, ss and SSS"),
    ],
)
def test_options_that_make_no_sense_are_refused(args: list[str], message: str) -> None:
    needed = ["--topic", "t", "--num-records", "1", "--bootstrap-server", "127.0.0.1:1"]
    rate = [] if args[0] == "consume" or "--throughput" in args else ["--throughput", "-1"]
    done = CliRunner().invoke(cli.main, ["perf", *args, *needed, *rate])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
