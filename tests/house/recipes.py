"""The recipes of CONTRIBUTING.md as edits of the tree, with names of no use.

An edit that finds its place no more is a recipe that the code has left behind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Edit(NamedTuple):
    """`text` goes behind `after`, which is in the file once, or in its place; `after` "": the file is new."""

    path: str
    after: str
    text: str
    in_place: bool = False


class Recipe(NamedTuple):
    """`title`: its heading. `proof`: a program that uses what is new. `tests`: arguments of pytest, the suite of its
    room."""

    title: str
    edits: tuple[Edit, ...]
    proof: str
    tests: tuple[str, ...]

    @property
    def files(self) -> set[str]:
        """The files that it changes or adds, but for tests."""
        return {edit.path for edit in self.edits if not edit.path.startswith("tests/")}

    @property
    def section(self) -> str:
        """Its text in CONTRIBUTING.md."""
        text = (ROOT / "CONTRIBUTING.md").read_text()
        return re.split(r"^##+ ", text.split(f"### {self.title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def copy_tree(target: Path) -> Path:
    """A copy of what the recipes touch, with its tests."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "soak", "bench", "mine")
    for name in ("shareq", "widgets", "tests", "notebooks", "binder"):
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    for name in ("pyproject.toml", "CONTRIBUTING.md", "DIFFERENCES.md", "README.md", "WORKSHOP.md", "Makefile"):
        shutil.copy(ROOT / name, target / name)
    return target


def carry_out(recipe: Recipe, tree: Path) -> None:
    """Make the edits. ValueError for one whose place is not there, or there twice."""
    for path, after, text, in_place in recipe.edits:
        file = tree / path
        if after and file.read_text().count(after) != 1:
            raise ValueError(f"{recipe.title}: {path} has {after!r} not exactly once")
        file.write_text(file.read_text().replace(after, text if in_place else after + text) if after else text)


def run(tree: Path, *arguments: str) -> str:
    """What Python prints in the tree; its last words if it fails."""
    paths = os.pathsep.join((str(tree), str(tree / "widgets")))
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"FAILED\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


# ---- a group configuration -------------------------------------------------------------------------------------------

CONFIGURATION = Recipe(
    "A group configuration",
    (
        Edit(
            "shareq/model/configs.py",
            'ConfigDef("share.renew.acknowledge.enable", True, "Allow consumers to renew locks."),\n',
            '        ConfigDef("share.spice.ms", 7, "The time for which a record takes on taste.", 1, 1000),\n',
        ),
        Edit("shareq/model/configs.py", "    renew_acknowledge_enable: bool = True\n", "    spice_ms: int = 7\n"),
    ),
    """
from shareq import Cluster
with Cluster(brokers=1) as cluster:
    cluster.configure_group("g", {"share.spice.ms": 9})
    print(cluster.image.group_config("g").spice_ms, cluster.image.group_config("h").spice_ms)
    try:
        cluster.configure_group("g", {"share.spice.ms": 0})
    except Exception as refused:
        print(refused)
""",
    ("tests/model/test_configs.py",),
)

# ---- an RPC ----------------------------------------------------------------------------------------------------------

RPC = Recipe(
    "An RPC",
    (
        Edit(
            "shareq/model/messages/unregister.py",
            "",
            '''"""UnregisterBroker (64)."""

from __future__ import annotations

from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


@message
class UnregisterBrokerRequest(Request):
    API_KEY: ClassVar[int] = 64

    broker_id: int


@message
class UnregisterBrokerResponse(Response):
    error_code: Errors = Errors.NONE
    error_message: str | None = None
''',
        ),
        Edit("shareq/wire/apis.py", "    transactions,\n", "    unregister,\n"),
        Edit(
            "shareq/wire/apis.py",
            "    Api(describe.DescribeProducersRequest, describe.DescribeProducersResponse, 0, 0),\n",
            "    Api(unregister.UnregisterBrokerRequest, unregister.UnregisterBrokerResponse, 0, 0),\n",
        ),
        Edit(
            "shareq/broker/routes.py",
            "    WriteTxnMarkersRequest,\n)\n",
            "from shareq.model.messages.unregister import UnregisterBrokerRequest, UnregisterBrokerResponse\n",
        ),
        Edit(
            "shareq/broker/routes.py",
            "        AllocateProducerIdsRequest: lambda _, __: controller.allocate_producer_ids(),\n",
            "        UnregisterBrokerRequest: lambda request, _: UnregisterBrokerResponse("
            'error_message=f"no {request.broker_id}"),\n',
        ),
        Edit("shareq/broker/authorization/rules.py", "    share_group,\n", "    unregister,\n"),
        Edit(
            "shareq/broker/authorization/rules.py",
            "    security.SaslHandshakeRequest: anyone,\n",
            "    unregister.UnregisterBrokerRequest: "
            "on_cluster(_ALTER, failed(unregister.UnregisterBrokerResponse)),\n",
        ),
    ),
    """
from shareq import Cluster
from shareq.broker.authorization import RULES
from shareq.broker.routes import BETWEEN_BROKERS
from shareq.model.experiments import ENABLE
from shareq.model.messages.unregister import UnregisterBrokerRequest
with Cluster(brokers=1, config={ENABLE: True}) as cluster:
    routes = cluster._brokers[0].routes
    print(routes[UnregisterBrokerRequest](UnregisterBrokerRequest(broker_id=3), None).error_message)
    print(set(routes) == set(RULES))
""",
    ("tests/wire/test_routes.py", "tests/wire/test_codec.py", "-k", "Unregister or route"),
)

# ---- an acknowledge type ---------------------------------------------------------------------------------------------

_STATES = "shareq/model/states.py"
_TABLES = "tests/leader/test_share_partition_states.py"

ACKNOWLEDGE_TYPE = Recipe(
    "An acknowledge type",
    (
        Edit(_STATES, "    RENEW = 4\n", "    DEFER = 5\n"),
        Edit(_STATES, '    RENEW = "renew"\n', '    DEFER = "defer"\n'),
        Edit(_STATES, "    (_Q, _E.RELEASE): _A,\n", "    (_Q, _E.DEFER): _A,\n"),
        Edit(_STATES, "RETURNING = frozenset({_E.RELEASE,", " _E.DEFER,"),
        Edit(_STATES, "    AcknowledgeType.RENEW: _E.RENEW,\n", "    AcknowledgeType.DEFER: _E.DEFER,\n"),
        Edit(
            "shareq/trace/journal/record_words.py",
            "WORDS: Final[dict[str, RecordWords]] = {\n",
            '    RecordEvent.DEFER: RecordWords("{member} deferred {offsets}", "deferred", "{holder} kept it"),\n',
        ),
        Edit("widgets/shareq_widgets/sheet.py", "MEANING: Final = {\n", '    AcknowledgeType.DEFER: "later",\n'),
        Edit("shareq/lessons/oracle/naive_leader.py", "2: AVAILABLE, 3: ARCHIVED", ", 5: AVAILABLE"),
        Edit(
            "tests/model/test_states.py",
            "        RecordEvent.RELEASE: AVAILABLE,\n",
            "        RecordEvent.DEFER: AVAILABLE,\n",
        ),
        Edit("tests/model/test_states.py", "RETURNING = (RecordEvent.RELEASE,", " RecordEvent.DEFER,"),
        Edit(_TABLES, '    "renew": acknowledge(4),\n', '    "defer": acknowledge(5),\n'),
        Edit(
            _TABLES,
            '    "renew": (IRS, "ACQUIRED", IRS, IRS, IRS, IRS),\n',
            '    "defer": (IRS, "AVAILABLE", IRS, IRS, IRS, IRS),\n',
        ),
        Edit(_TABLES, 'ACKNOWLEDGEMENTS = ("gap", "accept", "release", "reject", "renew"', ', "defer"'),
    ),
    """
from shareq import Cluster, Producer, ShareConsumer, metrics
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.journal.event_text import event_text
from shareq_widgets import sheet
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures import locks, record

with Cluster(brokers=1) as cluster:
    at = {"bootstrap.servers": cluster.bootstrap_servers}
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
    cluster.create_topic("t")
    with Producer(at) as producer:
        producer.produce("t", value=b"v")
    with ShareConsumer({**at, "group.id": "g", "share.acknowledgement.mode": "explicit"}) as consumer:
        consumer.subscribe(["t"])
        for verdict in ("defer", "accept"):
            message, = consumer.poll(10)
            consumer.acknowledge(message, verdict)
            consumer.commit_sync()
            instant = instant_of(GroupHistory(cluster.journal, "g"))
            print(message.delivery_count(), locks.draw(locks.content(instant), 760).text)
            print(record.draw(record.content(instant, "t", 0, 0), 760).text)
    texts = [event_text(entry.broker_id, entry.event) for entry in cluster.journal]
    print([text for text in texts if "deferred" in text])
    print([key for key in map(str, metrics(cluster)) if "ackType=Defer" in key])
print([row for row in sheet._types().rows if row[0] == "DEFER"])
""",
    ("tests/model/test_states.py", _TABLES, "tests/leader/test_share_requests.py"),
)

# ---- a tool ----------------------------------------------------------------------------------------------------------

TOOL = Recipe(
    "A tool",
    (
        Edit(
            "shareq/tools/spice.py",
            "",
            '''"""`shareq spice`."""

from __future__ import annotations

import click

from shareq.tools.connection import Connection, connection_options


@click.command()
@connection_options
def spice(connection: Connection) -> None:
    """Count the topics."""
    with connection.admin() as admin:
        click.echo(f"{len(admin.list_topics())} topics")
''',
        ),
        Edit("shareq/commands.py", "LATE = {\n", '    "spice": Late("shareq.tools.spice", "Count the topics."),\n'),
    ),
    """
from click.testing import CliRunner
from shareq import Cluster
from shareq.cli import main
with Cluster(brokers=1, clock="wall") as cluster:
    served = cluster.serve()
    print(CliRunner().invoke(main, ["spice", "--bootstrap-server", served.bootstrap_servers]).output)
""",
    ("tests/test_cli.py", "-k", "listed or whole_sentences"),
)

# ---- a view of a group -----------------------------------------------------------------------------------------------

VIEW = Recipe(
    "A view of a group",
    (
        Edit(
            "widgets/shareq_widgets/pictures/spice.py",
            "",
            '''"""The number of members."""

from __future__ import annotations

from typing import NamedTuple

from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant


class SpiceContent(NamedTuple):
    members: int


def content(instant: Instant) -> SpiceContent:
    return SpiceContent(len(instant.history.group(instant.until).members))


def draw(found: SpiceContent, width: float) -> Drawing:
    return Drawing(width, 40, text=f"{found.members} members")
''',
        ),
        Edit(
            "widgets/shareq_widgets/views.py",
            "from shareq_widgets.pictures import record as record_drawing\n",
            "from shareq_widgets.pictures import spice as spice_drawing\n",
        ),
        Edit(
            "widgets/shareq_widgets/views.py",
            "    made.keeps = [STATE]  # it has no picture\n    return made\n",
            '''

@refusing_others
def spice(source: Any, *, group: str, **options: Unpack[Options]) -> GroupPicture:
    """The number of members."""

    def draw(frame: Frame) -> Drawing:
        return spice_drawing.draw(spice_drawing.content(frame.instant), frame.width)

    return group_picture(source, group, draw, "Spice", options)
''',
        ),
        Edit("widgets/shareq_widgets/__init__.py", "        record,\n", "        spice,\n"),
        Edit("widgets/shareq_widgets/__init__.py", '    "record": "views",\n', '    "spice": "views",\n'),
        Edit("widgets/shareq_widgets/__init__.py", '    "record",\n', '    "spice",\n'),
        Edit("widgets/shareq_widgets/screen.py", '"wide": ("raster",', ' "spice",'),
        Edit("widgets/shareq_widgets/screen.py", '    "record": "Record",\n', '    "spice": "Spice",\n'),
        Edit(
            "widgets/shareq_widgets/screen.py",
            '        "record": lambda: views.record(source, **place, **options),\n',
            '        "spice": lambda: views.spice(source, group=group, **options),\n',
        ),
    ),
    """
import shareq_widgets
from shareq import Cluster, NewTopic, Admin
with Cluster(brokers=1) as cluster:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic("t", 1, 1)]).check()
    room = shareq_widgets.control_room(cluster, group="g", topic="t", animate=False)
    room.screen.slots["wide"].shown = "spice"
    print(room.screen.shown["wide"].drawing["text"])
    print("spice" in dir(shareq_widgets))
    room.close()
""",
    ("tests/widgets/test_refused_arguments.py",),
)

# ---- a lesson --------------------------------------------------------------------------------------------------------


def _notebook(*cells: str) -> str:
    """A notebook that has not run. A cell that begins with "#" is text."""
    made: list[dict[str, object]] = [
        {"cell_type": "markdown", "id": f"c{place}", "metadata": {}, "source": source}
        if source.startswith("#")
        else {"cell_type": "code", "id": f"c{place}", "metadata": {}, "source": source}
        | {"execution_count": None, "outputs": []}
        for place, source in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


_ANSWER = """
def my_answer():
    ...


exercise("19.{}").check(my_answer)"""

LESSON = Recipe(
    "A lesson",
    (
        Edit(
            "notebooks/19_spice.ipynb",
            "",
            _notebook(
                "# Spice\n\n" + "How much is enough? " * 1_000,
                "from shareq.lessons import Bench, exercise\nfrom shareq_widgets import strip\n\nbench = Bench(3)\n"
                'worker = bench.consumer("worker")\nlen(worker.poll(1))',
                'view = strip(bench.cluster, group="crew", topic="jobs")\nview',
                'assert view.snapshot["window_end"] == 3',
                _ANSWER.format(1),
                _ANSWER.format(2),
                "## What to take along\n\n- One pinch.\n\nThe [README](../README.md) has everything else.",
            ),
        ),
        Edit(
            "notebooks/18_beyond_the_kip.ipynb",
            "the [README](../README.md) has everything else.",
            " Next: [19 Spice](19_spice.ipynb).",
        ),
        Edit("shareq/lessons/syllabus.py", '        "18": "Beyond the KIP",\n', '        "19": "Spice",\n'),
        Edit(
            "shareq/lessons/exercises/lesson_19.py",
            "",
            '''"""Lesson 19, spice: how much of it."""

from __future__ import annotations

from typing import Final

from shareq.lessons.checks import Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask

EXERCISES: Final = Exercises("19")


@EXERCISES.judged_by("A pinch", "It is less than two.", "It is more than none.")
def pinch(answer: Answer) -> Passed:
    return check(ask(answer) == 1, "one is enough", "not enough, or too much")


@EXERCISES.judged_by("A handful", "It is less than six.", "It is more than four.")
def handful(answer: Answer) -> Passed:
    return check(ask(answer) == 5, "five are enough", "not enough, or too much")
''',
        ),
        Edit(
            "shareq/lessons/solutions/lesson_19.py",
            "",
            '''"""Solutions of lesson 19."""

from __future__ import annotations

from typing import Final


def pinch() -> int:
    return 1


def handful() -> int:
    return 5


SOLUTIONS: Final = {"19.1": pinch, "19.2": handful}
''',
        ),
        Edit(
            "tests/lessons/wrong/lesson_19.py",
            "",
            """WRONG = {
    key: [(lambda answer=answer: answer, "not enough, or too much") for answer in (0, 2, 6)]
    for key in ("19.1", "19.2")
}
""",
        ),
        Edit(
            "README.md",
            "exactly once under a kill, and order, rests and transactions in one group |\n",
            "| `notebooks/19_spice.ipynb` | how much is enough |\n",
        ),
        Edit("WORKSHOP.md", "has 16 lessons", "has 17 lessons", in_place=True),
        Edit("WORKSHOP.md", "(00 to 13, 17 and 18)", "(00 to 13, 17 to 19)", in_place=True),
        Edit("WORKSHOP.md", "17, 18 and the labs need none", "17 to 19 and the labs need none", in_place=True),
        Edit("WORKSHOP.md", "17, 18, and the labs |", "17 to 19, and the labs |", in_place=True),
    ),
    """
from tests.stored_notebooks import main
main(["notebooks/19_spice.ipynb"])
from shareq.lessons import exercise
from shareq.lessons.exercise import solution_of
print(exercise("19.1").check(solution_of("19.1")))
""",
    (
        "tests/lessons/test_answers.py",
        "tests/house/test_notebooks.py",
        "tests/house/test_workshop.py",
        "-k",
        "19 or workshop or three_wrong",
    ),
)

RECIPES = (CONFIGURATION, RPC, ACKNOWLEDGE_TYPE, TOOL, VIEW, LESSON)
