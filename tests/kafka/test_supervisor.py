"""A broker ends, and its folder is removed, however the process that started it ends.

`sleep` replaces the broker here.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shareq.kafka import supervisor
from tests.polling import PATIENCE_S

# A parent that starts a supervisor as LocalKafka does, prints both process ids, and runs the code of the test. A
# background process and its children ignore Ctrl-C, so this one restores the handler.
PARENT = """\
import os, select, signal, subprocess, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
supervisor = subprocess.Popen(
    [sys.executable, "-I", "-S", {supervisor!r}, {folder!r}, "/bin/sh", "-c", "echo $$; exec sleep 1000"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
)
print(supervisor.pid, supervisor.stdout.readline().decode().strip(), flush=True)
{then}
"""

# Until the end of stdin. A blocking read would never see a signal that arrives just before it.
WAIT = "while not select.select([sys.stdin], [], [], 0.1)[0]: pass"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "broker's own"
    folder.mkdir()
    (folder / "data").write_text("records")
    return folder


@pytest.fixture
def run(folder: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], int, int]]]:
    """`run(then)` starts the parent; returns it, the process id of the supervisor, and that of the broker."""
    started: list[subprocess.Popen[str]] = []

    def run(then: str = WAIT) -> tuple[subprocess.Popen[str], int, int]:
        program = PARENT.format(supervisor=supervisor.__file__, folder=str(folder), then=then)
        parent = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(parent)
        assert parent.stdout is not None
        ids = parent.stdout.readline().split()
        return parent, int(ids[0]), int(ids[1])

    yield run
    for parent in started:
        parent.kill()
        parent.communicate()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition() and not pause.wait(0.02):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"


def gone(pid: int) -> bool:
    """True if a process has ended, or is a zombie (state Z)."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return not done.stdout.strip() or done.stdout.startswith("Z")


Run = Callable[..., tuple[subprocess.Popen[str], int, int]]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_the_broker_ends_with_its_parent(run: Run, folder: Path, how: signal.Signals) -> None:
    parent, its_supervisor, broker = run()
    parent.send_signal(how)
    until(lambda: gone(broker), "the end of the broker")
    until(lambda: gone(its_supervisor), "the end of the supervisor")
    assert not folder.exists()


def test_the_broker_ends_when_its_parent_returns(run: Run, folder: Path) -> None:
    _, its_supervisor, broker = run("")
    until(lambda: gone(broker) and gone(its_supervisor), "the end of the broker")
    assert not folder.exists()


def test_a_forked_sibling_that_holds_the_pipe_open_does_not_keep_the_broker(run: Run, folder: Path) -> None:
    _, its_supervisor, broker = run("if os.fork() == 0: sys.stdin.read()\nos._exit(0)")
    until(lambda: gone(broker) and gone(its_supervisor), "the end of the broker")
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a child when its parent ends")
def test_the_broker_ends_with_its_supervisor(run: Run) -> None:
    _, its_supervisor, broker = run("supervisor.wait()")
    subprocess.run(["kill", "-9", str(its_supervisor)], check=True)
    until(lambda: gone(broker), "the end of the broker")


def test_a_supervisor_that_is_terminated_terminates_the_broker(run: Run) -> None:
    _, its_supervisor, broker = run("supervisor.wait()")
    subprocess.run(["kill", str(its_supervisor)], check=True)
    until(lambda: gone(broker), "the end of the broker")


@pytest.mark.parametrize(
    ("order", "code"),
    [
        pytest.param("t", 128 + signal.SIGTERM, id="terminate"),
        pytest.param("k", 128 + signal.SIGKILL, id="kill"),
    ],
)
def test_an_ordered_end_keeps_the_folder(run: Run, folder: Path, order: str, code: int) -> None:
    parent, _, broker = run(
        f"supervisor.stdin.write({order.encode()!r}); supervisor.stdin.flush()\nprint(supervisor.wait())"
    )
    assert parent.stdout is not None
    assert int(parent.stdout.readline()) == code
    assert gone(broker)
    assert (folder / "data").exists(), "the broker may be started again"


def test_a_command_that_cannot_run_is_reported(folder: Path) -> None:
    command = [sys.executable, "-I", "-S", supervisor.__file__, str(folder), "/no/such/java"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 127
    assert output == "/no/such/java: [Errno 2] No such file or directory\n"
