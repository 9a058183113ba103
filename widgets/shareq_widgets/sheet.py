"""Share groups on one page, to print: states, window, locks, epochs, configurations.

The pictures are those of a small run on virtual time, and the tables those that the brokers use, so that the page
shows what the code does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.model.configs import BROKER_CONFIGS, GROUP_CONFIGS
from shareq.model.errors import in_words
from shareq.model.states import ACKNOWLEDGE_EVENT, AcknowledgeType, RecordState, next_state
from shareq.producer import Producer
from shareq_widgets import export, views
from shareq_widgets.drawing import Drawing
from shareq_widgets.partition_strip import strip
from shareq_widgets.rasterizer import rasterized
from shareq_widgets.svg import size_of, to_svg
from shareq_widgets.text_fit import SMALL, wrapped

WIDTH: Final = 1400
HEIGHT: Final = 990
"""A4, landscape."""
MARGIN: Final = 28
COLUMN: Final = (WIDTH - 3 * MARGIN) // 2
LINE: Final = 14
TITLE: Final = 26
SUFFIXES: Final = (".svg", ".png")

GROUP: Final = "payments"
TOPIC: Final = "orders"

MEANING: Final = {
    AcknowledgeType.ACCEPT: "processed",
    AcknowledgeType.RELEASE: "not processed now: another attempt, by any member",
    AcknowledgeType.REJECT: "cannot be processed: no further attempt",
    AcknowledgeType.RENEW: "still in work: the lock begins again, the delivery count stays",
    AcknowledgeType.GAP: "no record has this offset; consumers send it by themselves",
}

EPOCHS: Final = (
    ("group epoch", "members, subscriptions or topics of it have changed", ""),
    ("assignment epoch", "the target assignment is that of this group epoch", ""),
    ("member epoch", "the member has a newer assignment; 0 joins, -1 leaves", "FENCED_MEMBER_EPOCH"),
    ("share session epoch", "a later request of the session; 0 opens, -1 closes", "INVALID_SHARE_SESSION_EPOCH"),
    ("leader epoch", "the partition has a newer leader", "FENCED_LEADER_EPOCH"),
    ("state epoch", "the share-partition was initialized again", "FENCED_STATE_EPOCH"),
)
"""Name, what a greater one means, and the error of a request with an older one."""


RULES: Final = (
    "The SPSO passes finished records (acknowledged, archived). One unfinished record holds it, and so the window.",
    "A full window, share.partition.max.record.locks, acquires nothing: one slow record can stop a partition.",
    "The delivery count grows with each acquisition; at share.delivery.count.limit a returned record is archived.",
    "Finished and returned records are durable in __share_group_state; locks are not: a new leader delivers again.",
    "An accept counts when its state write has succeeded. After a lock has run out, it is INVALID_RECORD_STATE.",
    "Members share partitions: more members than partitions is normal, and the order of records is not kept.",
)


class Cells(NamedTuple):
    """A table: heads, rows, and the left edges of its columns, px."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    lefts: Sequence[float]


def page() -> str:
    """The page as SVG, in the light theme, A4 landscape."""
    left, right = MARGIN, 2 * MARGIN + COLUMN
    with Cluster(seed=7) as cluster:
        pictures = [
            *_column(
                left,
                ("Record states", _states(cluster)),
                ("Acknowledge types", _table(_types())),
                ("Configurations of a group (kafka-configs --entity-type groups)", _table(_configurations())),
            ),
            *_column(
                right,
                (
                    "The window: from SPSO, the first unfinished offset, to SPEO, the last one in flight",
                    _strip(cluster),
                ),
                ("Acquisition locks: a lock that runs out releases its record", _locks(cluster)),
                ("Epochs", _table(_epochs())),
                ("To remember", _list(RULES)),
            ),
        ]
    frame = Drawing(WIDTH, HEIGHT, text="Share groups on one page: states, window, locks, epochs, configurations")
    frame.label("title", MARGIN, 34, "Share groups on one page", style="strong", font_size=22)
    scope = "KIP-932 as in Apache Kafka 4.4 · delivery is at least once, without an order"
    frame.label("subtitle", WIDTH - MARGIN, 34, scope, anchor="end", style="soft")
    return to_svg(frame).removesuffix("</svg>") + "".join(pictures) + "</svg>"


def save(path: str | Path) -> Path:
    """Write the page to a file that ends in .svg or .png. ValueError for another suffix, OSError names the path."""
    file = Path(path)
    export.check_path(file, SUFFIXES)
    svg = page()
    return export.write(file, svg.encode() if file.suffix == ".svg" else rasterized(svg, theme="light", scale=2))


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def sheet(file: Path) -> None:
    """Write share groups on one page to FILE, .svg or .png, to print on A4."""
    try:
        save(file)
    except (OSError, ValueError) as problem:
        raise click.ClickException(in_words(problem)) from None
    click.echo(f"{file}: share groups on one page, A4 landscape")


# ---- layout ----------------------------------------------------------------------------------------------------------


def _column(x: float, *parts: tuple[str, str]) -> Iterable[str]:
    y = 56.0
    for title, picture in parts:
        head = Drawing(COLUMN, TITLE)
        head.label("title", 0, 16, title, style="strong", font_size=14)
        yield _at(x, y, to_svg(head))
        yield _at(x, y + TITLE, picture)
        y += TITLE + size_of(picture)[1] + 10


def _at(x: float, y: float, picture: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{picture}</g>'


def _table(cells: Cells) -> str:
    """A table whose last column is broken into lines."""
    drawing, y = Drawing(COLUMN), 12.0
    for head, x in zip(cells.heads, cells.lefts, strict=True):
        drawing.label(f"head {x:g}", x, y, head, style="small soft")
    y += 6
    for number, row in enumerate(cells.rows):
        drawing.line(f"rule {number}", 0, y, COLUMN, y)
        ends = [*cells.lefts[1:], float(COLUMN)]
        lines = [
            wrapped(text, end - x - 6, SMALL, strong=not place)
            for place, (text, x, end) in enumerate(zip(row, cells.lefts, ends, strict=True))
        ]
        for place, (x, several) in enumerate(zip(cells.lefts, lines, strict=True)):
            for line, text in enumerate(several):
                style = "small" if place else "strong small"
                drawing.label(f"cell {number} {place} {line}", x, y + LINE * (line + 1) - 3, text, style=style)
        y += LINE * max(map(len, lines)) + 2
    drawing.height = y + 4
    return to_svg(drawing)


def _list(sentences: Sequence[str]) -> str:
    drawing, y = Drawing(COLUMN), 0.0
    for number, sentence in enumerate(sentences):
        drawing.label(f"number {number}", 0, y + LINE - 3, f"{number + 1}", style="strong small")
        for line, text in enumerate(wrapped(sentence, COLUMN - 24, SMALL)):
            y += LINE
            drawing.label(f"sentence {number} {line}", 18, y - 3, text, style="small")
        y += 4
    drawing.height = y
    return to_svg(drawing)


# ---- tables ----------------------------------------------------------------------------------------------------------


def _types() -> Cells:
    return Cells(
        ("type", "code", "next state", "meaning"),
        [(kind.name, str(int(kind)), _next(kind), MEANING[kind]) for kind in MEANING],
        (0, 78, 118, 386),
    )


def _next(kind: AcknowledgeType) -> str:
    """The states of an acquired record after an acknowledgement: at a delivery, at the last one, with a queue."""

    def after(count: int, *, queue: bool = False) -> str:
        state = next_state(
            RecordState.ACQUIRED,
            ACKNOWLEDGE_EVENT[kind],
            delivery_count=count,
            delivery_count_limit=2,
            dead_letter_queue=queue,
        )
        assert state is not None, "each type is legal for an acquired record"
        return state.name.lower()

    words = after(1)
    if after(2) != words:
        words += f", at the last delivery {after(2)}"
    if after(2, queue=True) != after(2):
        words += f" (before, with a dead-letter queue: {after(2, queue=True)})"
    return words


def _epochs() -> Cells:
    return Cells(("epoch", "a greater one means", "error of an older one"), EPOCHS, (0, 140, 430))


def _configurations() -> Cells:
    rows = []
    for key, definition in GROUP_CONFIGS.items():
        if key.startswith("share.") and not definition.unused:
            low, high = definition.low, definition.high
            if definition.bounds is not None:
                low, high = (int(BROKER_CONFIGS[bound].default) for bound in definition.bounds)
            allowed = (
                ", ".join(definition.choices) if definition.choices else "" if low is None else f"{low:,} to {high:,}"
            )
            default = f"{definition.default:,}" if type(definition.default) is int else str(definition.default).lower()
            rows.append((key, default, allowed or "true, false", definition.doc))
    return Cells(("key", "default", "allowed by default", "meaning"), rows, (0, 214, 328, 466))


# ---- pictures --------------------------------------------------------------------------------------------------------


def _states(cluster: Cluster) -> str:
    _run(cluster)
    return views.states(cluster, group=GROUP, topic=TOPIC, partition=0).to_svg("light", COLUMN)


def _strip(cluster: Cluster) -> str:
    shown = strip(cluster, group=GROUP, topic=TOPIC)
    picture, _ = shown.still(shown.snapshot, 0, 0, "light", COLUMN)
    return picture


def _locks(cluster: Cluster) -> str:
    return views.locks(cluster, group=GROUP).to_svg("light", COLUMN)


def _run(cluster: Cluster) -> None:
    """A group whose records are in all states: accepted out of order, rejected, released, renewed, in work."""
    cluster.create_topic(TOPIC)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    conf = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": GROUP,
        "share.acknowledgement.mode": "explicit",
        "max.poll.records": 4,
    }
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number in range(18):
            producer.produce(TOPIC, str(number).encode(), partition=0)
            producer.flush()
    anna, ben, carla = (ShareConsumer({**conf, "client.id": name}) for name in ("anna", "ben", "carla"))
    for consumer in (anna, ben, carla):
        consumer.subscribe([TOPIC])
    batches = {}
    for consumer in (anna, ben, carla):
        while not (found := consumer.poll(6)):
            pass
        batches[consumer] = found
        cluster.advance(3000)
    accept, release = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
    for message in batches[anna][:1]:
        anna.acknowledge(message, accept)
    anna.acknowledge(batches[anna][1], AcknowledgeType.RENEW)
    anna.commit_sync()
    for message, kind in zip(batches[ben], (accept, accept, AcknowledgeType.REJECT, release), strict=False):
        ben.acknowledge(message, kind)
    ben.commit_sync()
