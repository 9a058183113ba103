"""The jars of Spark's own Kafka source and of Delta Lake, which are not part of PySpark. Ivy downloads them, and
compares them only with the checksums that their repository publishes: each must also have the SHA-256 that is pinned
here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from shareq.jvm import cache_folder, find_java
from shareq.kafka import ivy
from shareq.kafka.pinned_jars import differing


class Jar(NamedTuple):
    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.revision}.jar"


KAFKA = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.1",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.0",
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
    ),
)


DELTA = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar("io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)
"""For Spark 4.2. For 4.3 there are none yet."""


def spark_jars(jars: Sequence[Jar] = KAFKA) -> list[Path]:
    """The jars, from the cache or downloaded. IvyFailed names one with another hash, whichever way it came."""
    folder = cache_folder() / f"{jars[0].name.partition('_2.')[0].removesuffix('-0-10')}-{jars[0].revision}"
    cache = folder.with_suffix(".ivy")
    for jar in jars:
        if not (folder / jar.file).exists():
            _fetch(jar, folder, cache)
        if wrong := differing(folder / jar.file, jar.sha256):
            raise ivy.IvyFailed(f"{wrong}. Remedy: delete {folder} and {cache}, and use another mirror.")
    return [folder / jar.file for jar in jars]


def _fetch(jar: Jar, folder: Path, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    options = ("-types", "jar", "bundle", "-confs", "default", "-notransitive")
    where = ("-settings", str(ivy._settings(cache)), "-cache", str(cache))
    what = ("-dependency", jar.organisation, jar.name, jar.revision)
    into = ("-retrieve", f"{folder}/[artifact]-[revision].[ext]")
    command = [*ivy._java_command(find_java(), ivy._ivy_jar()), *where, *options, *what, *into]
    subprocess.run(command, check=True, capture_output=True)
