"""Ends a part whose test is stuck and holds back the signal of its time limit, with the stacks of all threads.

pytest's option `faulthandler_timeout` does the same with a new thread for each test: a third of the processor time of
short tests. Here one thread watches over all tests that begin within some seconds.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Iterator

import pytest

INI = "stuck_timeout"
TOGETHER_S = 10.0
"""How long the tests begin that one thread watches over: each may take so much longer than the option says."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(INI, "seconds after which a test, with its own fixtures, ends the process; 0: never", default="0")


def pytest_configure(config: pytest.Config) -> None:
    if seconds := float(config.getini(INI)):
        config.pluginmanager.register(_Watch(seconds), "stuck")


class _Watch:
    """What is printed goes to the stderr of the process, which pytest captures during a test."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self._stderr = os.dup(sys.stderr.fileno())

    def _watch(self) -> None:
        faulthandler.dump_traceback_later(self._seconds + TOGETHER_S, exit=True, file=self._stderr)
        self._until = time.monotonic() + TOGETHER_S

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        if time.monotonic() >= self._until:
            self._watch()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        """A fixture that several tests share may start a JVM, and has a limit of its own."""
        if fixturedef.scope == "function":
            return (yield)
        faulthandler.cancel_dump_traceback_later()
        try:
            return (yield)
        finally:
            self._watch()

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """pytest stops all watching when a test fails."""
        self._until = 0.0

    def pytest_unconfigure(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        os.close(self._stderr)
