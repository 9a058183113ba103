"""Acknowledge types of single rows, sent from `foreachBatch` to the source's reader, which is another process.

They are passed in a folder on the machine of both processes, that of the driver or of Spark Connect's server; its path
is in the session's configuration. Each reader creates an inbox in it, and `acknowledge` writes a file into every inbox.
If a file is lost with the driver, its batch is not acknowledged, either.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING
from urllib.parse import quote

from shareq.model.ids import Place
from shareq.model.states import AcknowledgeType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERDICTS = {"release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}

FOLDER_KEY = "spark.shareq.verdicts"

_numbers = count()


def verdict_folder(spark: SparkSession) -> str:
    """The folder of a session. It exists while it has inboxes."""
    folder: str | None = spark.conf.get(FOLDER_KEY, None)
    if folder is None:
        folder = str(Path(tempfile.gettempdir(), f"shareq-verdicts-{token_hex(8)}"))
        spark.conf.set(FOLDER_KEY, folder)
    return folder


def acknowledge(df: DataFrame, verdict: str, *, group: str | None = None) -> int:
    """Release or reject the rows of `df` (topic, partition, offset) instead of accepting them. Returns their number.

    For `foreachBatch`: takes effect when the batch is acknowledged; the other rows are accepted. Released records are
    delivered again in a later batch, rejected ones are archived. If queries of several groups read the same topics,
    `group` is the group of the rows. RuntimeError if no running query can acknowledge them.
    """
    if verdict not in VERDICTS:
        raise ValueError(f"verdict={verdict!r}: must be one of {', '.join(VERDICTS)}")
    boxes = _boxes(df.sparkSession, group)
    rows = df.select("topic", "partition", "offset").collect()
    places: dict[str, dict[str, list[int]]] = {}
    for topic, partition, offset in rows:
        places.setdefault(topic, {}).setdefault(str(partition), []).append(offset)
    if rows:
        text = json.dumps({"verdict": verdict, "places": places})
        for box in boxes:
            draft = box / f"{next(_numbers):012}.draft"
            draft.write_text(text)
            draft.replace(draft.with_suffix(".json"))
    return len(rows)


def _boxes(spark: SparkSession, group: str | None) -> list[Path]:
    pattern = "*" if group is None else f"{quote(group, safe='')}@*"
    folder = spark.conf.get(FOLDER_KEY, None)
    found = sorted(Path(folder).glob(pattern)) if folder else []
    if not found:
        whose = "any share group" if group is None else f"group {group!r}"
        raise RuntimeError(f"no streaming query of {whose} is running: call acknowledge inside foreachBatch")
    return found


class LetterBox:
    """The acknowledge types that `acknowledge` has sent to one reader."""

    def __init__(self, folder: str, group: str) -> None:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = Path(tempfile.mkdtemp(prefix=f"{quote(group, safe='')}@", dir=folder))

    def empty(self) -> Mapping[Place, dict[int, int]]:
        """Remove and return all acknowledge types, by place and offset; later ones replace earlier ones."""
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
        with suppress(OSError):  # other readers have inboxes in it
            self._path.parent.rmdir()
