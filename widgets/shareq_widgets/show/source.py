"""What `shareq show` can show: a new cluster, a cluster at an address, or a journal file; and the code that does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from shareq.admin import Admin
from shareq.model.errors import ConfigException, KafkaException
from shareq.trace import Journal

GROUP: Final = "crew"
TOPIC: Final = "jobs"
"""The names in a new cluster."""

FILES: Final = {".jsonl": "from_jsonl", ".parquet": "from_parquet"}
"""The methods of `Journal` that read a file, by its suffix."""

ANSWER_S: Final = 4.0
"""The time in which a cluster must answer."""


class NothingToShow(ConfigException):
    """The source answers, and has no share group with a partition yet."""


Places = Mapping[str, Collection[int]]
"""The partitions of a group, by topic."""


class Wishes(NamedTuple):
    """What a person chose. None: the first one, or the only one."""

    group: str | None = None
    topic: str | None = None
    partition: int | None = None


class Shown(NamedTuple):
    """`title` names the source; `lines` create it as `source`, in the kernel of the page."""

    title: str
    lines: tuple[str, ...]
    group: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"group {self.group}, {self.topic}-{self.partition} of {self.title}"

    def code(self, theme: str) -> str:
        """The code of the page's cell."""
        place = f"group={self.group!r}, topic={self.topic!r}, partition={self.partition}"
        show = f"control_room(source, {place}, theme={theme!r})"
        return "\n".join(("from shareq_widgets import control_room", *self.lines, show))


def find(source: str | None, wishes: Wishes) -> Shown:
    """What is shown of SOURCE. ConfigException, KafkaException, OSError or ValueError if there is nothing to show."""
    if source is None:
        return _new_cluster(wishes)
    if Path(source).suffix in FILES:
        return _journal_file(Path(source).resolve(), wishes)
    if ":" not in source:
        suffixes = " or ".join(FILES)
        raise ConfigException(f"SOURCE={source!r}: must be host:port,... or the path of a {suffixes} file")
    return _address(source, wishes)


def _new_cluster(wishes: Wishes) -> Shown:
    group, topic, partition = wishes.group or GROUP, wishes.topic or TOPIC, wishes.partition or 0
    lines = (
        "from shareq import Cluster",
        "source = Cluster(brokers=3, seed=11, trace_messages=True)",
        f"source.create_topic({topic!r}, {partition + 1})",
        f"source.configure_group({group!r}, {{'share.auto.offset.reset': 'earliest'}})",
    )
    return Shown("a new cluster", lines, group, topic, partition)


def _journal_file(path: Path, wishes: Wishes) -> Shown:
    read = FILES[path.suffix]
    journal: Journal = getattr(Journal, read)(path)
    groups: dict[str, dict[str, list[int]]] = {}
    for group, topic, partition in journal.subjects():
        if group and topic and partition is not None:
            groups.setdefault(group, {}).setdefault(topic, []).append(partition)
    group = _chosen("group", wishes.group, sorted(groups), str(path))
    lines = ("from shareq import Journal", f"source = Journal.{read}({str(path)!r})")
    return Shown(str(path), lines, group, *_share_partition(group, groups[group], wishes))


def _address(address: str, wishes: Wishes) -> Shown:
    admin = Admin({"bootstrap.servers": address})
    try:
        groups = sorted(admin.list_groups(["share"], timeout=ANSWER_S))
        group = _chosen("group", wishes.group, groups, address)
        places: dict[str, list[int]] = {}
        for place in admin.list_share_group_offsets(group, timeout=ANSWER_S):
            places.setdefault(place.topic, []).append(place.partition)
    except KafkaException as problem:
        raise ConfigException(f"the cluster at {address} cannot be shown: {problem.error.str()}") from problem
    except NothingToShow as nothing:
        raise NothingToShow(f"{nothing} yet: start a share consumer; --wait waits for one") from None
    finally:
        admin.close()
    return Shown(address, (f"source = {address!r}",), group, *_share_partition(group, places, wishes))


def _share_partition(group: str, places: Places, wishes: Wishes) -> tuple[str, int]:
    topic = _chosen("topic", wishes.topic, sorted(places), f"group {group}")
    partitions = sorted(places[topic])
    if wishes.partition is None:
        return topic, partitions[0]
    if wishes.partition not in partitions:
        known = ", ".join(map(str, partitions))
        raise ConfigException(f"partition={wishes.partition}: must be one of {known} of topic {topic}")
    return topic, wishes.partition


def _chosen(kind: str, wish: str | None, known: list[str], where: str) -> str:
    """The wish, or the first one that is known."""
    if not known:
        raise NothingToShow(f"{where} has no {'share group' if kind == 'group' else kind} to show")
    if wish is not None and wish not in known:
        raise ConfigException(f"{kind}={wish!r}: must be one of {', '.join(known)} of {where}")
    return known[0] if wish is None else wish
