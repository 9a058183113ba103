"""Verdicts on single rows: said in the driver, heard by the source's reader, which is a process of its own beside it.

They go through a folder of the driver's machine: a reader makes a letter box there, `acknowledge` drops a file into
each. A verdict that is lost with the driver costs nothing: its batch is not acknowledged either.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from shareq.model.states import AcknowledgeType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICTS = {"release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}

Place = tuple[str, int]
"""(topic, partition)."""

_numbers = count()


@cache
def verdict_folder() -> Path:
    """The folder of this driver; it goes when the driver goes."""
    folder = Path(tempfile.mkdtemp(prefix="shareq-verdicts-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def acknowledge(df: DataFrame, verdict: str, *, group: str | None = None) -> int:
    """Release or reject the rows of `df` (topic, partition, offset) instead of accepting them; how many there are.

    For `foreachBatch`: the verdict counts when the batch is acknowledged, the rest of which is accepted. Released
    records come again in a later batch, rejected ones are archived. Where queries of several groups read the same
    topics, `group` says whose rows they are.
    """
    if verdict not in VERDICTS:
        raise ValueError(f"verdict={verdict!r}: must be one of {', '.join(VERDICTS)}")
    rows = df.select("topic", "partition", "offset").collect()
    places: dict[str, dict[str, list[int]]] = {}
    for topic, partition, offset in rows:
        places.setdefault(topic, {}).setdefault(str(partition), []).append(offset)
    if rows:
        text = json.dumps({"verdict": verdict, "places": places})
        for box in _boxes(group):
            draft = box / f"{next(_numbers):012}.draft"
            draft.write_text(text)
            draft.replace(draft.with_suffix(".json"))
    return len(rows)


def _boxes(group: str | None) -> Iterable[Path]:
    pattern = "*" if group is None else f"{quote(group, safe='')}@*"
    return sorted(verdict_folder().glob(pattern))


class LetterBox:
    """Where one reader finds the verdicts for its batches."""

    def __init__(self, folder: str, group: str) -> None:
        self._path = Path(tempfile.mkdtemp(prefix=f"{quote(group, safe='')}@", dir=folder))

    def empty(self) -> Mapping[Place, dict[int, int]]:
        """All verdicts since the last time, by place and offset; later words count more."""
        found: dict[Place, dict[int, int]] = {}
        for path in sorted(self._path.glob("*.json")):
            letter = json.loads(path.read_text())
            verdict = VERDICTS[letter["verdict"]]
            for topic, partitions in letter["places"].items():
                for partition, offsets in partitions.items():
                    found.setdefault((topic, int(partition)), {}).update(dict.fromkeys(offsets, verdict))
            path.unlink()
        return found

    def close(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
