"""Java's archive of the classes of a broker: a broker that has it starts in half the time.

The cache folder has an archive per Java and Kafka. Java writes one at the orderly end of a broker that ran without; an
archive that fits no longer is ignored by Java.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from shareq.jvm import Java, cache_folder
from shareq.kafka.jars import KafkaJars

_QUIET = "-Xlog:cds=off,cds+dynamic=off"  # the log of a broker is Kafka's


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for brokers of `jars` on `java`."""

    java: Java
    jars: KafkaJars

    @property
    def path(self) -> Path:
        made_for = f"{self.java.executable.resolve()} {self.java.version} {self.jars.classpath}"
        return cache_folder() / f"kafka-{self.jars.version}-{hashlib.sha256(made_for.encode()).hexdigest()[:12]}.jsa"

    @property
    def missing(self) -> bool:
        return not self.path.exists()

    def use(self) -> tuple[str, ...]:
        """Options of Java that use the archive; none if it is missing."""
        return () if self.missing else (f"-XX:SharedArchiveFile={self.path}", _QUIET)

    def use_or_write(self, draft: Path) -> tuple[str, ...]:
        """Options of Java that use the archive; if it is missing, those that write it to `draft` at an orderly end."""
        return self.use() or (f"-XX:ArchiveClassesAtExit={draft}", _QUIET)

    def keep(self, draft: Path) -> None:
        """Move a written draft to the cache folder; of several processes the last one wins. A full disk is no error:
        brokers start without an archive, too.
        """
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            shutil.copyfile(draft, part)
            part.replace(self.path)
        except OSError:
            part.unlink(missing_ok=True)
