"""`shareq show`: what it shows of each source, and its errors. tests/browser/test_show.py opens the page."""

from __future__ import annotations

import ast
import asyncio
import gc
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import create_server
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from tornado.websocket import WebSocketClosedError

from shareq import Admin, Cluster, Journal, ShareConsumer, view
from shareq.cli import main
from shareq.extras import install_command
from shareq.wire.server import Server
from shareq_widgets import ControlRoom
from shareq_widgets.show import command
from shareq_widgets.show.app import SETTINGS, Connection
from shareq_widgets.show.source import NothingToShow, Wishes, find
from tests.polling import QUICK

GROUPS = {"packers": ["boxes"], "crew": ["jobs", "letters"]}
"""The topics of each group."""


def cluster_of_groups(clock: str) -> Cluster:
    """Two groups with a member each, and a third one that no member has joined."""
    cluster = Cluster(brokers=1, clock=clock, config=QUICK)
    for group, topics in GROUPS.items():
        for topic in topics:
            cluster.create_topic(topic, 2)
        consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
        consumer.subscribe(topics)
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            while len(admin.list_share_group_offsets(group)) < 2 * len(topics):
                consumer.poll(0.1)
    return cluster


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same journal in both formats, and files that are none."""
    folder = tmp_path_factory.mktemp("journals")
    with cluster_of_groups("virtual") as cluster:
        cluster.journal.to_jsonl(folder / "run.jsonl")
        cluster.journal.to_parquet(folder / "run.parquet")
    Journal().to_jsonl(folder / "empty.jsonl")
    (folder / "bad.jsonl").write_text("no journal\n")
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster_of_groups("wall") as cluster, Server(cluster) as server:
        yield server.bootstrap_servers


@pytest.fixture(scope="module")
def places(journals: Path, address: str) -> Iterator[dict[str, str]]:
    """The folder and the addresses, by the word that stands for them in a table."""
    with (
        Cluster(brokers=1, clock="wall") as cluster,
        Server(cluster) as empty,
        create_server(("127.0.0.1", 0)) as silent,
    ):
        host, port = silent.getsockname()
        servers = {"ADDRESS": address, "EMPTY": empty.bootstrap_servers, "SILENT": f"{host}:{port}"}
        yield {"FOLDER": str(journals), **servers}


def result_of(code: str) -> Any:
    """The value of the last line, as in a cell."""
    *lines, last = ast.parse(code).body
    names: dict[str, Any] = {}
    exec(compile(ast.Module(lines, []), "cell", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("source", ["run.jsonl", "run.parquet", "address"])
@pytest.mark.parametrize(
    ("wishes", "shown"),
    [
        pytest.param(Wishes(), ("crew", "jobs", 0), id="the first of all"),
        pytest.param(Wishes("packers"), ("packers", "boxes", 0), id="a group"),
        pytest.param(Wishes("crew", "letters"), ("crew", "letters", 0), id="a topic"),
        pytest.param(Wishes(None, None, 1), ("crew", "jobs", 1), id="a partition"),
    ],
)
def test_a_source_is_shown(
    journals: Path, address: str, source: str, wishes: Wishes, shown: tuple[str, str, int]
) -> None:
    found = find(address if source == "address" else str(journals / source), wishes)
    assert (found.group, found.topic, found.partition) == shown
    room = result_of(found.code("dark"))
    assert isinstance(room, ControlRoom)
    assert tuple(room.screen.place.values()) == shown
    assert room.screen.strip.theme == "dark"
    assert room.panel is None
    room.close()


@pytest.mark.parametrize(
    ("wishes", "place"),
    [
        pytest.param(Wishes(), {"group": "crew", "topic": "jobs", "partition": 0}, id="as it is"),
        pytest.param(Wishes("g", "t", 2), {"group": "g", "topic": "t", "partition": 2}, id="with names"),
    ],
)
def test_a_new_cluster_can_be_steered_at_once(wishes: Wishes, place: dict[str, Any]) -> None:
    room = result_of(find(None, wishes).code("auto"))
    assert room.screen.place == place
    steering = room.panel.steering
    for control, value in (("produce", 6), ("add consumer", "accept"), ("advance", 10_000)):
        steering.do(control, value)
    partitions = range(place["partition"] + 1)
    views = [view(steering.cluster, place["group"], place["topic"], partition) for partition in partitions]
    assert sum(shown.snapshot()["spso"] for shown in views) == 6
    room.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["no.jsonl"], "{FOLDER}/no.jsonl: No such file or directory", id="no such file"),
        pytest.param(["no.parquet"], "{FOLDER}/no.parquet", id="no such Parquet file"),
        pytest.param(["bad.jsonl"], "{FOLDER}/bad.jsonl, line 1: ", id="no journal"),
        pytest.param(["empty.jsonl"], "{FOLDER}/empty.jsonl has no share group to show", id="a journal without group"),
        pytest.param(
            ["run.jsonl", "--group", "cooks"],
            "group='cooks': must be one of crew, packers of {FOLDER}/run.jsonl",
            id="an unknown group",
        ),
        pytest.param(
            ["run.jsonl", "--topic", "boxes"],
            "topic='boxes': must be one of jobs, letters of group crew",
            id="a topic of another group",
        ),
        pytest.param(
            ["run.jsonl", "--partition", "7"], "partition=7: must be one of 0, 1 of topic jobs", id="no such partition"
        ),
        pytest.param(
            ["localhost"],
            "SOURCE='localhost': must be host:port,... or the path of a .jsonl or .parquet file",
            id="no address",
        ),
        pytest.param(["localhost:99999"], "'localhost:99999' must have a port in 1..65535", id="no port"),
        pytest.param(["127.0.0.1:1"], "broker at 127.0.0.1:1 cannot be reached", id="a closed port"),
        pytest.param(["nowhere.invalid:9092"], "nowhere.invalid", id="an unknown host"),
        pytest.param(
            ["SILENT"],
            "the cluster at {SILENT} cannot be shown: the operation timed out",
            id="a server that does not answer",
        ),
        pytest.param(
            ["EMPTY"],
            "{EMPTY} has no share group to show yet: start a share consumer; --wait waits for one\n",
            id="a cluster without group",
        ),
        pytest.param(
            ["ADDRESS", "--group", "cooks"],
            "group='cooks': must be one of crew, packers of {ADDRESS}",
            id="an unknown group of a cluster",
        ),
    ],
)
def test_an_error_is_one_line(
    places: dict[str, str], arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places["FOLDER"])
    result = CliRunner().invoke(main, ["show", "--no-browser", *(places.get(word, word) for word in arguments)])
    assert result.exit_code == 1
    assert message.format(**places) in result.output
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1


def test_the_first_group_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--wait`: a cluster without group is looked at again, and a wrong address is an error at once."""
    looks: list[Any] = []

    def look(source: str | None, wishes: Wishes) -> Any:
        looks.append(source)
        if len(looks) < 3:
            raise NothingToShow("no group")
        return find(source, wishes)

    monkeypatch.setattr(command, "find", look)
    monkeypatch.setattr(command, "LOOK_S", 0)
    result = CliRunner().invoke(main, ["show", "--no-browser", "--wait", "localhost"])
    assert (result.exit_code, len(looks)) == (1, 3)
    assert "SOURCE='localhost': must be host:port" in result.output


def test_a_wrong_source_is_refused_without_voila() -> None:
    """Its import takes seconds."""
    shown = "print('voila.app' in sys.modules)"
    code = f"import sys, shareq.cli; sys.argv[1:] = ['show', 'localhost']\ntry: shareq.cli.main()\nfinally: {shown}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("False\n", 1)


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--partition", "-1"], ["--theme", "blue"], ["a", "b"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, ["show", *arguments])
    assert (result.exit_code, arguments[-1] in result.output) == (2, True)


def test_a_port_in_use_is_an_error() -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["show", "--no-browser", "--port", str(port)])
    assert result.exit_code == 1
    assert result.output == f"Error: port {port} on 127.0.0.1 is in use by another program: choose another --port\n"


def test_later_signals_do_not_disturb_the_end() -> None:
    command = [sys.executable, "-u", "-m", "shareq.cli", "show", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            assert [process.stdout.readline()[:12], process.stdout.readline()] == ["shareq shows", "Ctrl-C stops it.\n"]
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.01)
            assert (process.stdout.read(), process.returncode) == ("shareq has stopped.\n", 0)
        finally:
            process.kill()


@pytest.mark.parametrize("missing", ["voila", "ipywidgets", "anywidget"])
def test_a_missing_package_has_the_install_command(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import shareq.cli; shareq.cli.main(['show', '--no-browser'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: the package {missing} is missing: {install_command('lab')}\n",
    )


def test_a_message_on_a_closed_connection_is_dropped() -> None:
    """A page sends ticks until it knows that its connection is closed; a traceback of one would be in the output."""
    connection, handler = Connection.__new__(Connection), KernelWebsocketHandler.__new__(KernelWebsocketHandler)
    handler.ws_connection = None
    connection.channels, connection.websocket_handler = {"shell": None}, handler
    tick: Any = (6).to_bytes(8, "little") + bytes(64)
    connection.handle_incoming_message(tick)


@pytest.mark.parametrize(
    ("problem", "logged"),
    [
        pytest.param(WebSocketClosedError(), [], id="a page that has closed"),
        pytest.param(RuntimeError("full"), ["a message did not reach the page"], id="another problem"),
    ],
)
def test_a_message_to_a_page_that_closes_is_dropped(
    caplog: pytest.LogCaptureFixture, problem: Exception, logged: list[str]
) -> None:
    """The kernel writes until it knows that its page is closed; a traceback of one would be in the output."""
    connection: Any = Connection.__new__(Connection)

    async def write() -> None:
        written = asyncio.get_running_loop().create_future()
        handler: Any = KernelWebsocketHandler.__new__(KernelWebsocketHandler)
        handler.write_message = lambda *_: written
        connection.websocket_handler = handler
        connection.write_message(b"", binary=True)
        written.set_exception(problem)
        await asyncio.sleep(0)

    asyncio.run(write())
    gc.collect()  # a future without a reader is logged when it is freed
    assert [record.message for record in caplog.records] == logged


def test_a_page_is_not_pinged() -> None:
    """A ping that is some milliseconds late would end the connection, with "WebSocket ping timeout" in the output."""
    handler: Any = KernelWebsocketHandler.__new__(KernelWebsocketHandler)
    handler.application = SimpleNamespace(settings=SETTINGS)
    assert handler.ping_interval == 0
