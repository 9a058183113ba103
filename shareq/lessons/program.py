"""A function of a notebook in its own process, which can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import finalize

_MAIN = "import sys; from pyspark import cloudpickle; cloudpickle.load(sys.stdin.buffer)()"
"""PySpark's cloudpickle includes the definitions of a notebook."""

_TAIL = 60
"""The number of last lines of output in the error of a failed program."""

_LOOK_S = 0.05


class ProgramFailed(RuntimeError):
    """A program ended with an error, and not by `kill`; the message has its last lines of output."""


class Program:
    """Calls `function` in another process, at once. Its output goes to the file `log`.

    The process ends when the function returns, with `kill()`, with a `with` block, and with this process.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        from pyspark import cloudpickle

        folder = tempfile.TemporaryDirectory(prefix="shareq-program-")
        self.log = Path(folder.name) / "log"
        self.killed = False
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        self._end = finalize(self, _end, self._process, folder)
        assert self._process.stdin is not None
        with self._process.stdin as stdin:
            stdin.write(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]

    @property
    def running(self) -> bool:
        """True until the process has ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process and its children with SIGKILL; a no-op if it has ended."""
        if self.running:
            self.killed = True
            _kill(self._process)

    def kill_when(self, until: Callable[[], bool], patience_s: float = 600.0) -> None:
        """Kill it as soon as `until()` is true. The condition is checked again with all processes stopped, so it holds
        at the kill.

        Raises as `follow` does if it ends before.
        """
        self.follow(lambda: until() and self._halted(until), patience_s)
        self.kill()

    def _halted(self, until: Callable[[], bool]) -> bool:
        """True if `until()` still holds with all processes stopped; otherwise they continue."""
        os.killpg(self._process.pid, signal.SIGSTOP)
        time.sleep(_LOOK_S)  # meanwhile, data in the system's buffers arrives
        if until():
            return True
        os.killpg(self._process.pid, signal.SIGCONT)
        return False

    def wait(self, patience_s: float = 600.0) -> None:
        """Wait until it ends. TimeoutError after `patience_s`; ProgramFailed."""
        self.follow(lambda: False, patience_s)

    def follow(self, until: Callable[[], bool], patience_s: float = 600.0) -> None:
        """Wait until `until()` is true, which is polled, or until it ends. TimeoutError; ProgramFailed."""
        deadline_s = time.monotonic() + patience_s
        while self.running and not until():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"still at work after {patience_s:g} s: {self._last_words()}")
            time.sleep(_LOOK_S)
        if self._process.returncode and not self.killed:
            raise ProgramFailed(f"it ended with {self._process.returncode}: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def __repr__(self) -> str:
        if self.running:
            return "at work"
        return "killed" if self.killed else f"ended with {self._process.returncode}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    if process.poll() is None:
        _kill(process)
    folder.cleanup()
