"""The command `shareq`: its list of commands, and what a start imports, which is most of its time."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from shareq import Cluster, __version__
from shareq.cli import main
from shareq.commands import LATE
from shareq.wire.server import Server

HEAVY = frozenset(
    {
        *("aiokafka", "asyncio", "confluent_kafka", "cryptography", "cramjam", "duckdb", "google", "ipywidgets", "jwt"),
        *("kio", "matplotlib", "numpy", "pandas", "prometheus_client", "pyarrow", "pyspark", "rich", "ssl", "tqdm"),
    }
)
TOOLS = ("acls", "browse", "configs", "consume", "dlq", "groups", "perf", "produce", "show", "topics", "verify")


def imported_by(*arguments: str) -> set[str]:
    """The names of all modules that are loaded when the command has printed what these arguments ask for."""
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr));"
        f"from shareq.cli import main; main({list(arguments)!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize("name", sorted(LATE))
def test_a_command_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert LATE[name].about == command.get_short_help_str(1_000)


def test_the_list_has_whole_sentences_and_begins_with_serve() -> None:
    listed = CliRunner().invoke(main, ["--help"]).output.split("Commands:\n")[1]
    assert listed.split()[0] == "serve"
    assert "..." not in listed
    for late in LATE.values():
        assert late.about in " ".join(listed.split())


def test_the_list_of_commands_imports_none_of_them() -> None:
    for option in ("--help", "--version"):
        modules = imported_by(option)
        assert modules.isdisjoint({late.module for late in LATE.values()})
        assert {name.split(".")[0] for name in modules}.isdisjoint(HEAVY)


@pytest.mark.parametrize("name", TOOLS)
def test_the_help_of_a_tool_imports_no_large_package(name: str) -> None:
    modules = imported_by(name, "--help")
    assert LATE[name].module in modules
    assert {module.split(".")[0] for module in modules}.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "words", ["acls", "browse", "configs", "consume", "dlq redrive", "groups", "perf produce", "topics", "verify"]
)
def test_a_tool_prints_the_version_as_those_of_kafka_do(words: str) -> None:
    done = CliRunner().invoke(main, [*words.split(), "--version"])
    assert (done.exit_code, done.output.split()[-1]) == (0, __version__)


def test_a_client_starts_without_the_events_and_the_image_of_brokers() -> None:
    """Tools that only ask import neither, nor what reads files of properties."""
    program = "import sys, shareq.admin, shareq.tools.groups, shareq.wire.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"shareq.model.events", "shareq.model.image", "configparser"}.isdisjoint(done.stdout.split())


UNUSED = frozenset({"csv", "decimal", "difflib", "encodings.idna", "hashlib", "hmac", "html", "secrets", "shutil"})
"""What a tool needs only in some cases."""


def test_a_tool_that_asks_a_server_loads_only_what_it_needs() -> None:
    """Nor does it look for garbage often: what it imports stays."""
    with Cluster(brokers=1, clock="wall", journal=False) as cluster, Server(cluster) as server:
        program = (
            "import atexit, gc, sys;"
            "atexit.register(lambda: print(gc.get_freeze_count(), gc.get_stats()[0]['collections'], *sys.modules));"
            "from shareq.cli import main;"
            f"main(['groups', '--bootstrap-server', '{server.bootstrap_servers}', '--list'])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    frozen, collections, *modules = done.stdout.split()
    assert int(frozen) > 10_000, "what is frozen is not looked through at the end either"
    assert UNUSED.isdisjoint(modules)
    assert int(collections) < 60


def test_the_protocol_is_loaded_without_the_package_of_random_tests() -> None:
    """kio imports hypothesis where it is installed, which is half of the time of a tool's start. A later import gets
    it."""
    program = (
        "import sys, shareq.wire.codec.schema; print('hypothesis' in sys.modules);"
        "import hypothesis, shareq.wire.codec.schema; print(hypothesis.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "hypothesis"]
