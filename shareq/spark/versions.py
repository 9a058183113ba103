"""The PySpark versions that the package supports."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from shareq.extras import install_command

MINIMUM = (4, 0)
"""The first PySpark with sources written in Python."""

STREAMING_MINIMUM = (4, 2)
"""The first PySpark that passes finished batches to a source and supports `availableNow`. With an older one the records
would be read and never acknowledged, until they are archived."""


class SparkDoesNotFit(RuntimeError):
    """PySpark is missing or too old; the message contains the remedy."""


def check_pyspark(found: str | None = None, *, streaming: bool = False) -> None:
    """Raise SparkDoesNotFit unless PySpark (version `found`, else the installed one) supports the sources."""
    advice = f"`{install_command('spark')}` installs one that fits"
    if found is None:
        try:
            found = version("pyspark")
        except PackageNotFoundError:
            raise SparkDoesNotFit(f"PySpark is not installed: {advice}") from None
    numbers = _numbers(found)
    if numbers < MINIMUM:
        raise SparkDoesNotFit(f"PySpark {found} does not support sources in Python, 4.0 does: {advice}")
    if streaming and numbers < STREAMING_MINIMUM:
        raise SparkDoesNotFit(
            f"PySpark {found} does not support acknowledging streams, 4.2 does: {advice}; "
            "batch reads, sweeps and pipelines work with this version"
        )


def has_streams() -> bool:
    """True if the installed PySpark supports acknowledging streams."""
    return _numbers(version("pyspark")) >= STREAMING_MINIMUM


def _numbers(found: str) -> tuple[int, ...]:
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in found.split(".")[:2])
