"""A reader runs the README's blocks: a server in the first terminal, and in the second one every other block as it
stands, one after the other, by the port that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.house.readme import (
    ADDRESS,
    BLOCKS,
    CONNECT,
    DENIED,
    FULFILMENT,
    GROUPS,
    IN_PROCESS,
    OUTPUT,
    PIPELINE,
    PYTHON,
    RESULTS,
    SERVE,
    START,
    STREAM,
    SWEEP,
    TOOLS,
    WATCH,
)
from tests.spark.patience import BUSY

PATIENCE_S = 600
"""Longest run of a block: Spark starts on a busy machine."""

ANSWERS: dict[str, tuple[str, Sequence[object]]] = {
    IN_PROCESS: (r"(?s)\A.*\Z", [OUTPUT]),
    CONNECT: (r"b'order (\d+)' (\d)", [(str(number), "1") for number in range(10)]),
    DENIED: (r"code=(\w+)", ["GROUP_AUTHORIZATION_FAILED"]),
    TOOLS: (
        r"(?m)^Topic: orders|^payments(?= +orders +0 )|^payments(?=.* Empty )",
        ["Topic: orders"] + 2 * ["payments"],
    ),
    GROUPS: (r"(?m)^(payments) +(orders) +0 +\d+ +\d+$", [("payments", "orders")]),
    WATCH: (r"\A(payments on orders-0: SPSO 10 \|) .*log end 10\n\Z", ["payments on orders-0: SPSO 10 |"]),
    FULFILMENT: (r"(?s)\A.*\Z", [RESULTS]),
    STREAM: (r"order (\d+)\|\s+1\|", [str(number) for number in range(10, 20)]),
    PIPELINE: (r"\A\d{2,} events, (0 bad lines), in \S*trace: report.html\n\Z", ["0 bad lines"]),
    SWEEP: (r"(?m)^(\d+) ", ["15000", "5000", "60000"]),
}
"""Block -> what it must print: a pattern, and all that it finds, sorted: Kafka creates the topic for the first record,
which the client then sends again, sometimes behind the others."""

NEED_JAVA = {TOOLS, STREAM, PIPELINE, SWEEP}
WITHOUT_PORT = {IN_PROCESS, DENIED, FULFILMENT, PIPELINE, SWEEP}
"""Blocks that do not name the port; one of them reads the trace that `shareq serve` has written."""


def folder_of_a_reader(path: Path) -> Path:
    """A folder in which `make lab` has installed the environment."""
    (path / ".venv").symlink_to(sys.prefix)
    return path


@contextmanager
def first_terminal(block: str, folder: Path) -> Iterator[None]:
    """Run the command of a server until the `with` block ends. It must have the port that the README names."""
    command = subprocess.Popen(
        shlex.split(block), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder
    )
    with command as process:
        try:
            assert process.stdout is not None
            printed = ""
            while "Ctrl-C" not in printed:
                line = process.stdout.readline()
                assert "is in use by another program" not in line, (
                    f"another program of this machine uses {ADDRESS}, the address of the README: end it, and test again"
                )
                assert line, f"{block} ended before it served: {printed}"
                printed += line
            assert re.search(rf"serves .*at {ADDRESS}", printed)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def second_terminal(block: str, folder: Path) -> str:
    """Run a block as it stands; what it prints."""
    words = (".venv/bin/python", "-c") if block in PYTHON else ("sh", "-ec")
    done = subprocess.run([*words, block], capture_output=True, text=True, check=False, cwd=folder, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr or block != PIPELINE
    return done.stdout


def walk(server: str, blocks: Sequence[str], folder: Path) -> None:
    """Run a server, and the blocks one after the other."""
    with first_terminal(server, folder):
        for block in blocks:
            pattern, answer = ANSWERS[block]
            printed = second_terminal(block, folder)
            assert sorted(re.findall(pattern, printed)) == answer, f"{block}\nprinted\n{printed}"


def test_the_walk_has_all_blocks() -> None:
    assert {*ANSWERS, SERVE, START} == {*BLOCKS}
    assert all(ADDRESS in block for block in ANSWERS if block not in WITHOUT_PORT)


def test_a_reader_needs_no_java_for_these_blocks(tmp_path: Path) -> None:
    folder = folder_of_a_reader(tmp_path)
    walk(SERVE, [block for block in ANSWERS if block not in NEED_JAVA], folder)
    assert (folder / "trace.jsonl").exists()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize("server", [SERVE, START], ids=lambda block: " ".join(block.split()[:2]))
def test_a_reader_runs_all_blocks_in_their_order(server: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Repeated from the start if the machine was too busy for Spark (see `BUSY`)."""
    blocks = [block for block in BLOCKS if block in ANSWERS and (server == SERVE or block not in WITHOUT_PORT)]
    while True:
        folder = folder_of_a_reader(tmp_path_factory.mktemp("reader"))
        try:
            walk(server, blocks, folder)
            break
        except AssertionError as error:
            if BUSY not in str(error):
                raise
    if server == SERVE:
        assert "Group payments" in (folder / "trace" / "report.html").read_text()
