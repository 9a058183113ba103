"""`shareq serve`: a cluster for Kafka clients. `shareq kafka`: Apache Kafka. `shareq tap`: a proxy in front of a Kafka.
`shareq observe`: the health of share groups. `shareq show`: the control room.

These run until Ctrl-C. `shareq groups`, `topics`, `configs`, `acls`, `consume`, `produce`, `perf`, `verify`: Kafka's
tools without a JVM. `shareq dlq`: dead-letter queues. `shareq browse`: records and who holds them.
`shareq pipeline`: tables and a report of a trace. `shareq what-if`: the cost of settings.
"""

from __future__ import annotations

from shareq import __version__
from shareq.extras import install_command

try:
    import click
except ModuleNotFoundError:
    raise SystemExit(f"The command shareq needs the package click: {install_command('kafka')}") from None

from shareq.commands import Commands


@click.group(cls=Commands)
@click.version_option(__version__)
def main() -> None:
    """See, run, break and measure Kafka share groups (KIP-932)."""


if __name__ == "__main__":
    main()
