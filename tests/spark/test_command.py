"""The commands on Spark: how they start Java, what they show of it, and their errors."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from shareq.cli import main
from shareq.jvm import JavaNotFound
from shareq.spark import command
from shareq.spark.command import BRIEF, quiet_java
from shareq.spark.pipeline import sources, stages
from shareq.spark.pipeline.store import Store
from shareq.spark.session import JAVA_OPTIONS

WARNING = [sys.executable, "-c", "import sys; print('a warning', file=sys.stderr)"]


@pytest.mark.parametrize(
    ("enabled", "fails", "shown"),
    [
        pytest.param(True, False, "", id="quiet"),
        pytest.param(False, False, "a warning", id="verbose"),
        pytest.param(True, True, "a warning", id="a failed start shows why"),
    ],
)
def test_messages_of_java_are_kept_from_the_terminal(
    capfd: pytest.CaptureFixture[str], enabled: bool, fails: bool, shown: str
) -> None:
    with suppress(OSError), quiet_java(enabled=enabled):
        subprocess.run(WARNING, check=True)
        if fails:
            raise OSError
    assert capfd.readouterr().err.strip() == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param(("pipeline", "run", "small.jsonl", "--out", "out"), False, id="pipeline"),
        pytest.param(("pipeline", "run", "small.jsonl", "--out", "out", "-v"), True, id="pipeline, verbose"),
        pytest.param(("what-if", "out.json"), False, id="what-if"),
        pytest.param(("what-if", "out.json", "--verbose"), True, id="what-if, verbose"),
    ],
)
def test_a_command_shows_messages_of_java_only_on_request(
    words: tuple[str, ...],
    shown: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    class StartedError(Exception):
        """The session has started, and is not used."""

    def started(**_: Any) -> Any:
        subprocess.run(WARNING, check=True)

        class Unusable:
            def __getattr__(self, name: str) -> Any:
                raise StartedError(name)

        return Unusable()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "unregistered", started)
    (tmp_path / "small.jsonl").write_text("{}\n")
    assert isinstance(CliRunner().invoke(main, [*words, "--no-progress"]).exception, StartedError)
    assert ("a warning" in capfd.readouterr().err) is shown


@pytest.mark.parametrize(
    ("words", "small", "brief"),
    [
        pytest.param(("pipeline", "run", "j.jsonl", "--out", "out"), 10, True, id="a small journal"),
        pytest.param(("pipeline", "run", "j.jsonl", "--out", "out"), 9, False, id="a larger journal"),
        pytest.param(("pipeline", "run", "j.jsonl", "--out", "out", "--follow", "1 s"), 10, False, id="without end"),
        pytest.param(("pipeline", "run", "kafka://host:1/t", "--out", "out"), 10, False, id="of unknown size"),
        pytest.param(("what-if", "out.json"), 0, True, id="what-if, computed by Python's processes"),
    ],
)
def test_java_compiles_briefly_where_it_has_little_to_do(
    words: tuple[str, ...], small: int, brief: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def session(**config: Any) -> Any:
        asked.append(config)
        raise OSError("not started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "unregistered", session)
    monkeypatch.setattr(stages, "SMALL", small)
    (tmp_path / "j.jsonl").write_text("x" * 1_000)
    done = CliRunner().invoke(main, [*words, "--master", "local[3]"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (1, "Error: not started")
    assert asked == [{"master": "local[3]"} | ({JAVA_OPTIONS: BRIEF} if brief else {})]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(ModuleNotFoundError(name="pyspark"), "the package pyspark is missing: ", id="no PySpark"),
        pytest.param(JavaNotFound("No Java 17"), "No Java 17", id="no Java"),
        pytest.param(
            type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})("a job\n  at\nCaused by: full\n  at x"),
            "Spark failed: full",
            id="the cause of a failed job",
        ),
    ],
)
def test_an_error_is_a_sentence(error: Exception, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def session(**_: Any) -> Any:
        raise error

    monkeypatch.setattr(command, "unregistered", session)
    done = CliRunner().invoke(main, ["what-if", "out.json", "--no-progress"])
    assert (done.exit_code, done.output[: 7 + len(message)]) == (1, f"Error: {message}")


def test_a_trace_in_a_topic_is_read_by_a_session_without_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of commands lack it, as it takes a Python process; the pipeline registers it for a topic."""
    registered: list[Any] = []

    class Session:
        @property
        def read(self) -> Any:
            assert registered == [self]
            raise OSError("read")

    monkeypatch.setattr(sources, "register", registered.append)
    with pytest.raises(OSError, match="read"):
        sources.events_of(cast("Any", Session()), "kafka://host:9092/trace")


STOPPED = """
import os, signal, sys
from pathlib import Path
from shareq.cli import main
from shareq.spark import command

class Session:
    sparkContext = property(lambda self: os.kill(os.getpid(), signal.SIGINT))

def started(**_):
    Path("out/deliveries").mkdir(parents=True)
    Path("out/deliveries/part-0.parquet").touch()
    Path("out/report.html").touch()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark has a handler of its own, too
    if sys.argv[1] == "starting":
        os.kill(os.getpid(), signal.SIGINT)
    return Session()

command.unregistered = started
main(sys.argv[2:])
"""


@pytest.mark.parametrize("moment", ["starting", "running"])
@pytest.mark.parametrize(
    ("words", "sentence", "left"),
    [
        pytest.param(
            ("pipeline", "run", "j.jsonl", "--out", "out"),
            "shareq pipeline has stopped; out has no tables, and no report.",
            [],
            id="pipeline",
        ),
        pytest.param(
            ("what-if", "mine.json"),
            "shareq what-if has stopped; the next run continues with the finished runs, which mine.json.runs has.",
            ["out"],
            id="what-if",
        ),
    ],
)
def test_ctrl_c_is_one_sentence_and_leaves_nothing_half_done(
    words: tuple[str, ...], sentence: str, left: list[str], moment: str, tmp_path: Path
) -> None:
    (tmp_path / "j.jsonl").write_text("{}\n")
    program = [sys.executable, "-c", STOPPED, moment, *words]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (command.INTERRUPTED, "")
    assert done.stderr == f"Starting Spark ...\n\n{sentence}\n"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "j.jsonl") == left


def test_a_folder_with_files_of_others_keeps_them(tmp_path: Path) -> None:
    for name in ("mine.txt", "schema.json"):
        (tmp_path / name).touch()
    (tmp_path / "events").mkdir()
    Store(str(tmp_path)).remove()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("module", ["spark.pipeline.command", "spark.source", "spark.state_topic"])
def test_a_start_imports_no_client_of_kafka(module: str) -> None:
    """It takes most of a second, and a trace in files needs none; a worker would import it for each task."""
    program = f"import sys, json, shareq.{module}; print(json.dumps([m for m in sys.modules if m[:7] == 'shareq.']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in json.loads(done.stdout)}
    assert rooms.isdisjoint({"wire", "admin", "consumer", "transports"})


def test_the_start_of_java_does_not_wait_for_arrow(tmp_path: Path) -> None:
    """It is imported while Java starts."""
    (tmp_path / "j.jsonl").write_text("{}\n")
    program = "import sys; from shareq.spark.pipeline.command import is_small; assert is_small('j.jsonl')"
    program += "; print({'numpy', 'pyarrow'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_trace_that_does_not_exist_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "unregistered", None)
    trace = str(tmp_path / "nothing.jsonl")
    done = CliRunner().invoke(main, ["pipeline", "run", trace, "--out", str(tmp_path / "out")])
    assert (done.exit_code, done.output) == (1, f"Error: {trace} does not exist\n")
