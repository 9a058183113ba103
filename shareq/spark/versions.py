"""Which versions of PySpark have what the package needs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from shareq.extras import install_command

MINIMUM = (4, 0)
"""The first PySpark with sources written in Python."""

STREAMING_MINIMUM = (4, 2)
"""The first one that tells a source what is done and whether it is to stop at what is available now. Without that
`availableNow` would read its records and never acknowledge them, until they are archived."""


class SparkDoesNotFit(RuntimeError):
    """PySpark is missing or too old; the message has the remedy."""


def check_pyspark(found: str | None = None, *, streaming: bool = False) -> None:
    """Raise SparkDoesNotFit unless PySpark (of version `found`, else the installed one) has what sources need."""
    advice = f"`{install_command('spark')}` brings one that fits"
    if found is None:
        try:
            found = version("pyspark")
        except PackageNotFoundError:
            raise SparkDoesNotFit(f"PySpark is not installed: {advice}") from None
    numbers = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in found.split(".")[:2])
    if numbers < MINIMUM:
        raise SparkDoesNotFit(f"PySpark {found} has no sources written in Python, 4.0 has: {advice}")
    if streaming and numbers < STREAMING_MINIMUM:
        raise SparkDoesNotFit(
            f"PySpark {found} does not tell a stream written in Python which batches are done, 4.2 does: {advice}; "
            "batch reads, sweeps and pipelines work as it is"
        )
