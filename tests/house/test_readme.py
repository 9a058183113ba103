"""Every block of code in the README runs as it stands; its links and pictures exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from shareq.cli import main
from shareq.kafka import tools
from tests.pairings.other_clients import CLIENTS, OTHER_CLIENTS
from tests.spark.patience import BUSY

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
MAKE = re.findall(r"\n\n(    make \w+)\n\n", README)
IN_PROCESS, CONNECT, DENIED, WATCH, STREAM, SWEEP = PYTHON
SERVE, START, TOOLS, GROUPS, PIPELINE = SHELL
ADDRESS = "127.0.0.1:9092"
OUTPUT = re.search(r"\nprints\n\n```text\n(.*?)```", README, re.DOTALL)
TEN = [(str(number), "1") for number in range(10)]
WATCHED = r"payments on orders-0: SPSO 10 \| .*log end 10\n"


PATIENCE_S = 600
"""Longest run of a block: Spark starts on a busy machine."""


def run(example: str, address: str = ADDRESS) -> str:
    """Output of a block that a reader has pasted."""
    return printed_by("-c", example.replace(ADDRESS, address))


def printed_by(*arguments: str, cwd: Path = ROOT) -> str:
    return finished(*arguments, cwd=cwd).stdout


def finished(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, *arguments]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=cwd, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done


def commands(block: str) -> list[list[str]]:
    """The lines of a block for a shell, as words, without the folder of the environment."""
    return [[word.removeprefix(".venv/bin/") for word in shlex.split(line)] for line in block.splitlines()]


class PortTakenError(Exception):
    """Another program of this machine uses the port that the README names."""


@contextmanager
def running(*command: str) -> Iterator[str]:
    """Run a command `shareq ...` until the block ends; yields the address that it prints."""
    program = [sys.executable, "-u", "-m", "shareq.cli", *command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "is in use by another program" in line:
                    raise PortTakenError(line)
                if printed := re.search(r"serves .*?(127\.0\.0\.1:\d+)", line):
                    yield printed[1]
                    break
            else:
                pytest.fail(f"{program} ended before it served")
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def test_a_consumer_is_denied() -> None:
    assert "code=GROUP_AUTHORIZATION_FAILED" in run(DENIED)


def test_first_example_prints_what_the_readme_shows() -> None:
    assert OUTPUT is not None
    assert run(IN_PROCESS) == OUTPUT[1]


def test_first_example_shares_one_partition_between_three_consumers() -> None:
    assert OUTPUT is not None
    assert {line[0] for line in OUTPUT[1].splitlines() if "at offset" in line} == set("ABC")


def test_readme_names_the_block_for_a_second_terminal() -> None:
    between = README.split(SERVE)[1].split(CONNECT)[0]
    assert "In a second terminal" in between


@pytest.mark.parametrize("block", [*PYTHON, *SHELL, *MAKE], ids=lambda block: block.splitlines()[0][:40])
def test_each_block_says_how_long_it_takes(block: str) -> None:
    before, after = README.split(block)
    near = before.rsplit("\n\n", 2)[-2] + after.split("\n\n", 2)[1]
    assert re.search(r"\bseconds?\b|\bminutes?\b", near)


def test_commands_of_the_table_exist() -> None:
    table = README.split("## Real clients")[1].split("```")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = [word.removeprefix("shareq ").split()[0] for row in rows for word in re.findall(r"`([^`]+)`", row)]
    assert set(named) == set(main.list_commands(click.Context(main)))


def test_the_clients_of_the_table_are_those_that_are_tested() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|(?: ✓ \|){4}$", README, re.MULTILINE)
    assert rows == [(client.name, client.version) for client in OTHER_CLIENTS]


def test_the_programs_in_go_have_the_versions_of_the_table() -> None:
    modules = "".join(module.read_text() for module in CLIENTS.glob("*/go.mod"))
    required = re.findall(r"^require github.com/\w+/(\S+) v(\S+)$", modules, re.MULTILINE)
    assert len(required) == 2
    assert {*required} <= {(client.name.lower(), client.version.split()[0]) for client in OTHER_CLIENTS}


def test_pictures_have_a_text_alternative() -> None:
    pictures = re.findall(r"<img [^>]*>", README)
    assert len(pictures) == 3
    assert all(len(re.findall(r'alt="([^"]{40,})"', picture)) == 1 for picture in pictures)


class Served(NamedTuple):
    """The cluster that the README serves, and the output of confluent-kafka's clients there."""

    address: str
    printed: str


@contextmanager
def as_written(command: list[str]) -> Iterator[str]:
    """Run a command of the README, on the port that it has there unless another program uses that; yields the
    address."""
    with ExitStack() as held:
        try:
            address = held.enter_context(running(*command[1:]))
            assert address == ADDRESS
        except PortTakenError:
            address = held.enter_context(running(*command[1:], "--port", "0"))
        yield address


@contextmanager
def serving() -> Iterator[Served]:
    [command] = commands(SERVE)
    with as_written(command) as address:
        yield Served(address, run(CONNECT, address))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


def test_confluent_kafka_receives_every_record_once(served: Served) -> None:
    assert re.findall(r"b'order (\d+)' (\d)", served.printed) == TEN


def test_observer_shows_the_group_from_outside(served: Served) -> None:
    assert re.fullmatch(WATCHED, run(WATCH, served.address))


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("line", [pytest.param(line, id=" ".join(line[3:])) for line in commands(TOOLS)])
def test_kafkas_tools_describe_the_served_cluster(line: list[str], served: Served) -> None:
    assert line[:3] == ["shareq", "kafka", "run"]
    done = tools.run(line[3], *(word.replace(ADDRESS, served.address) for word in line[4:]))
    assert done.returncode == 0
    assert line[-1].lstrip("-") in done.stdout.lower()


def test_shareqs_tool_describes_the_served_cluster(served: Served) -> None:
    [line] = commands(GROUPS)
    printed = printed_by("-m", "shareq.cli", *(word.replace(ADDRESS, served.address) for word in line[1:]))
    assert re.search(r"^payments +orders +0 +\d+ +\d+$", printed, re.MULTILINE)


@pytest.mark.usefixtures("kafka")
def test_the_same_blocks_run_on_apache_kafka() -> None:
    install, start = commands(START)
    assert install == ["pip", "install", "-e", ".[kafka]"]
    with as_written(start) as address:
        # Kafka creates the topic for the first record; the client then sends it again, sometimes behind the others.
        assert sorted(re.findall(r"b'order (\d+)' (\d)", run(CONNECT, address))) == TEN
        assert re.fullmatch(WATCHED, run(WATCH, address))


@pytest.fixture(scope="module")
def on_spark() -> list[str]:
    """Output of the two blocks for Spark, run one after the other in one program, as in a notebook.

    Repeated on another cluster if the machine was too busy for Spark (see `BUSY`).
    """
    while True:
        try:
            with serving() as found:
                return run(f"{STREAM}\nprint('then')\n{SWEEP}", found.address).split("then\n")
        except AssertionError as error:
            if BUSY not in str(error):
                raise


@pytest.mark.spark
@pytest.mark.timeout(2 * PATIENCE_S)
def test_spark_receives_the_new_records_once(on_spark: list[str]) -> None:
    assert re.findall(r"order (\d+)\|\s+1\|", on_spark[0]) == [str(number) for number in range(10, 20)]


@pytest.mark.spark
@pytest.mark.timeout(2 * PATIENCE_S)
def test_sweep_has_a_row_for_each_lock_duration(on_spark: list[str]) -> None:
    assert [int(first) for first in re.findall(r"^(\d+) ", on_spark[1], re.MULTILINE)] == [5_000, 15_000, 60_000]


@pytest.mark.spark
@pytest.mark.timeout(2 * PATIENCE_S)
def test_pipeline_makes_a_report_of_a_trace(tmp_path: Path) -> None:
    [serve] = commands(SERVE)
    assert "`shareq serve --journal trace.jsonl`" in README
    with running(*serve[1:], "--port", "0", "--journal", str(tmp_path / "trace.jsonl")) as address:
        run(CONNECT, address)
    [pipeline] = commands(PIPELINE)
    done = finished("-m", "shareq.cli", *pipeline[1:], cwd=tmp_path)
    assert re.fullmatch(r"\d{2,} events, 0 bad lines, in \S*trace: report.html\n", done.stdout)
    assert "WARN" not in done.stderr
    assert "Group payments" in (tmp_path / "trace" / "report.html").read_text()


def test_linked_files_exist() -> None:
    targets = re.findall(r'(?:src|srcset)="([^"]+)"', README) + re.findall(r"\]\(([^)#:]+)\)", README)
    targets += re.findall(r"`((?:notebooks|shareq|tests)/[\w./]+)`", README)
    assert len(targets) > 5
    assert [target for target in targets if not (ROOT / target).exists()] == []
