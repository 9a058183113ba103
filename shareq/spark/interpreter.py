"""The Python of Spark's workers on this machine.

Spark begins the path of each Python process with the archives `pyspark.zip` and py4j's, and its own jar. An archive has
no compiled modules, so each process compiles PySpark, and searches the jar for every module: a third of its start. This
Python has PySpark installed, with compiled modules: a script removes the archives from the path and runs it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import sysconfig
from pathlib import Path

from shareq.jvm import cache_folder

_SCRIPT = """\
#!/bin/sh
# Run a worker of Spark with the installed PySpark: the archives of the path have no compiled modules.
PYTHONPATH="${{PYTHONPATH}}:"
PYTHONPATH="${{PYTHONPATH#{package}/python/lib/pyspark.zip:{package}/python/lib/py4j-*-src.zip:}}"
PYTHONPATH="${{PYTHONPATH#{package}/jars/spark-core_*.jar:}}"
PYTHONPATH="${{PYTHONPATH%:}}"
export PYTHONPATH
exec {python} "$@"
"""


def choose_python(*, local: bool) -> None:
    """Set PYSPARK_PYTHON, unless the user has: with a local master to the script, else to this Python."""
    script = worker_python()
    if os.environ.get("PYSPARK_PYTHON", script) in (script, sys.executable):
        os.environ["PYSPARK_PYTHON"] = script if local else sys.executable


def worker_python() -> str:
    """The script, written into the cache folder if it is missing; this Python itself where PySpark is not installed for
    it, or no script can be run."""
    import pyspark

    package = Path(pyspark.__file__).parent
    if os.name != "posix" or "SPARK_HOME" in os.environ or package.parent != Path(sysconfig.get_path("purelib")):
        return sys.executable
    script = _SCRIPT.format(package=shlex.quote(str(package)), python=shlex.quote(sys.executable))
    try:
        path = cache_folder() / f"python-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(script)
            part.chmod(0o755)
            part.replace(path)
    except OSError:
        return sys.executable
    return str(path) if os.access(path, os.X_OK) else sys.executable
