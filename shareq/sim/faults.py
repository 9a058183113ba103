"""Faults of a run at times of its clock: calls that injure a `Cluster`, as text.

faults_of("10 s: messages.cut(0, 1); 40 s: messages.heal(); 60 s: jump_clock(45_000)")

A text can be a value of a sweep's grid, a column of its rows and a field of a file, which calls of Python cannot.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from shareq.broker import Cluster
from shareq.model.errors import ConfigException, IllegalStateException

TOPIC: Final = "work"
"""The topic of a run."""

REPLICAS: Final = 3
"""Of each partition of the topic, where there are as many brokers."""

CALLS: Final = (
    "messages.disturb",
    "messages.cut",
    "messages.heal",
    "delay_appends",
    "jump_clock",
    "kill_broker",
    "stop_broker",
    "start_broker",
    "elect_preferred_leaders",
    "clear_faults",
)
"""The calls of a `Cluster` that a run can make; all take plain values."""

_TIMED_CALL = re.compile(r"(\d+(?:\.\d{1,3})?) ?s: ?(.+)", re.DOTALL)


class Fault(NamedTuple):
    """A call of a cluster, `at_ms` after the start of a run."""

    text: str
    at_ms: int
    call: str
    values: tuple[Any, ...]
    named_values: dict[str, Any]

    def inject(self, cluster: Cluster) -> None:
        """Make the call. It raises what the cluster raises."""
        attrgetter(self.call)(cluster)(*self.values, **self.named_values)


def faults_of(text: str) -> list[Fault]:
    """The faults in a text, in order of time, at equal times as written. ConfigException for another form of text."""
    pieces = [piece.strip() for piece in text.split(";")]
    return sorted((_fault(piece) for piece in pieces if piece), key=lambda fault: fault.at_ms)


def _fault(text: str) -> Fault:
    try:
        timed = _TIMED_CALL.fullmatch(text)
        call = timed and ast.parse(timed[2].strip(), mode="eval").body
        if timed and isinstance(call, ast.Call) and ast.unparse(call.func) in CALLS:
            values = tuple(ast.literal_eval(value) for value in call.args)
            named_values = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
            return Fault(text, round(float(timed[1]) * 1000), ast.unparse(call.func), values, named_values)
    except (SyntaxError, ValueError):
        pass
    raise ConfigException(
        f"faults={text!r}: must be a time and a call with plain values, such as '10 s: messages.cut(0, 1)', "
        f"several with semicolons between them; the calls are {', '.join(CALLS)}"
    )


def check_faults(text: object, brokers: int, max_duration_s: int) -> None:
    """ConfigException for a text of another form, for a time outside a run, and for a call that a cluster of so many
    brokers refuses, such as the start of a broker that runs."""
    if not isinstance(text, str):
        raise ConfigException(f"faults={text!r}: must be a text such as '10 s: messages.cut(0, 1)'")
    late = [fault for fault in faults_of(text) if fault.at_ms > max_duration_s * 1000]
    if late:
        raise ConfigException(f"faults={late[0].text!r}: must be in 0..{max_duration_s} s (max_duration_s)")
    if text:
        _rehearse(text, brokers)


@lru_cache(maxsize=100)  # the scenarios of a sweep differ in other parameters
def _rehearse(text: str, brokers: int) -> None:
    """Make the calls on a cluster without clients: its own checks are those of a scenario."""
    with Cluster(brokers=brokers, journal=False) as cluster:
        cluster.create_topic(TOPIC, replication_factor=min(REPLICAS, brokers))
        for fault in faults_of(text):
            try:
                fault.inject(cluster)
            except (ConfigException, IllegalStateException, TypeError) as problem:
                raise ConfigException(f"faults={fault.text!r}: {problem}") from problem
