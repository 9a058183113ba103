"""Spark reads a share group from a server with TLS and a login, and no plan, log or error shows a password or a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shareq import Producer
from shareq.admin import Admin
from shareq.spark.options import parse
from shareq.spark.stream import StreamReader
from tests.spark.patience import finish
from tests.wire.certificates import PASSWORD
from tests.wire.secrets import Secrets, texts_of, texts_of_error
from tests.wire.secured import Secured, Vault, secured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VALUES = [b"value-%d" % number for number in range(10)]
WRONG, KEY_PASSWORD = "not-the-password", "password-of-the-key"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return Vault(tmp_path_factory.mktemp("vault"))


@pytest.fixture
def server(vault: Vault) -> Iterator[Secured]:
    """A server with TLS and SCRAM, whose topic has records."""
    with secured(vault, "SCRAM-SHA-512") as made:
        with Producer({"bootstrap.servers": made.cluster.bootstrap_servers}) as producer:
            for value in VALUES:
                producer.produce("orders", value)
        yield made


def options(vault: Vault, server: Secured, **changed: str) -> dict[str, str]:
    """The keys of confluent-kafka, each with `kafka.` before it, with a key of the client's as a text."""
    texts = {
        "ssl.certificate.pem": Path(vault.client.cert).read_text(),
        "ssl.key.pem": Path(vault.client.key).read_text(),
        "ssl.key.password": KEY_PASSWORD,
    }
    conf = {**vault.client_config("SCRAM-SHA-512"), **texts, "bootstrap.servers": server.bootstrap_servers, **changed}
    return {"subscribe": "orders", "group.id": "g", **{f"kafka.{key}": value for key, value in conf.items()}}


def secrets(vault: Vault) -> Secrets:
    """Those of `options`."""
    made = Secrets()
    made.add("a password", PASSWORD, WRONG, KEY_PASSWORD)
    made.add_key(Path(vault.client.key).read_text())
    return made


@contextmanager
def logged(spark: SparkSession) -> Iterator[Any]:
    """What Spark logs meanwhile on the driver, from INFO on: a Java object whose `toString` has it."""
    jvm: Any = spark.sparkContext._jvm
    core = jvm.org.apache.logging.log4j.core
    written = jvm.java.io.StringWriter()
    layout = core.layout.PatternLayout.createDefaultLayout()
    appender = core.appender.WriterAppender.createAppender(layout, None, written, "test", False, True)
    appender.start()
    root = jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    spark.sparkContext.setLogLevel("INFO")
    root.addAppender(appender)
    try:
        yield written
    finally:
        root.removeAppender(appender)
        spark.sparkContext.setLogLevel("WARN")


def plans(frame: DataFrame) -> str:
    """The plans of a frame, with all details."""
    executed: Any = frame._jdf.queryExecution()
    return f"{executed.toString()}\n{frame!r}\n{frame.schema!r}"


def test_a_secured_share_group_is_read_and_the_password_is_not_shown(
    spark: SparkSession, vault: Vault, server: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = options(vault, server)
    values: list[bytes] = []
    queries: list[Any] = []
    checkpoint = tmp_path / "checkpoint"

    def sink(rows: DataFrame, number: int) -> None:
        del number
        values.extend(bytes(row.value) for row in rows.collect())

    def start() -> Any:
        writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
        queries.append(writer.trigger(availableNow=True).start())
        return queries[-1]

    caplog.set_level("DEBUG", logger="shareq")  # at this level py4j would log each call with its arguments
    with logged(spark) as written:
        read = spark.read.format("shareq").options(**given).load()
        assert sorted(bytes(row.value) for row in read.collect()) == VALUES
        stream = spark.readStream.format("shareq").options(**given).load()
        finish(start)
        query = queries[-1]
        shown = [plans(read), plans(stream), query._jsq.explainInternal(True), str(query.lastProgress)]
    assert sorted(values) == VALUES
    with Admin({"bootstrap.servers": server.cluster.bootstrap_servers}) as admin:
        assert admin.lag("g").total == 0
    stored = [file.read_text(errors="replace") for file in checkpoint.rglob("*") if file.is_file()]
    logs = written.toString()
    assert "orders" in "".join(shown + stored), "something was shown"
    assert "Job 0" in logs or "Starting job" in logs
    assert secrets(vault).shown_in([*shown, *stored, logs, caplog.text]) == []
    assert not list(server.server.failures)


def test_a_reader_does_not_show_the_password(vault: Vault, server: Secured, tmp_path: Path) -> None:
    parsed = parse(options(vault, server))
    assert parsed.conf["sasl.password"] == PASSWORD
    reader = StreamReader(parsed, str(tmp_path / "verdicts"))
    assert secrets(vault).shown_in(texts_of(parsed, reader)) == []


def test_a_refused_login_is_an_error_without_the_password(spark: SparkSession, vault: Vault, server: Secured) -> None:
    given = options(vault, server, **{"sasl.password": WRONG})
    with logged(spark) as written, pytest.raises(Exception, match="Authentication failed") as refused:
        spark.read.format("shareq").options(**given).load().collect()
    assert secrets(vault).shown_in([*texts_of_error(refused.value), written.toString()]) == []
