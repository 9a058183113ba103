"""The compared brokers, each in its own process: `shareq serve`, Apache Kafka, and `shareq tap` in front of one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from shareq.kafka import LocalKafka

ROOT = Path(__file__).parents[2]
CONFIG = {"group.share.heartbeat.interval.ms": 1000, "group.share.min.heartbeat.interval.ms": 100}
"""Settings that `LocalKafka` has, too: members have their partitions after two heartbeats."""


def _as_installed() -> dict[str, str]:
    """An environment in which Python writes bytecode files, as pip does for installed packages."""
    added = {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "shareq-bench-bytecode")}
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | added


class _Module:
    """A module in its own process, which prints its address in its first line."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=_as_installed())
        assert self.process.stdout is not None
        found = re.search(r" at (\S+)", self.process.stdout.readline())
        assert found
        self.bootstrap_servers = found[1]
        self.pids = [self.process.pid]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0


class _Command(_Module):
    """A command of shareq."""

    def __init__(self, *arguments: str, port: int = 0) -> None:
        super().__init__("shareq.cli", *arguments, "--port", str(port))


class Serving(_Command):
    """`shareq serve`. `options`: more options of the command."""

    def __init__(self, *options: str, port: int = 0) -> None:
        super().__init__("serve", *(f"--config={key}={value}" for key, value in CONFIG.items()), *options, port=port)


class Kafka:
    """Apache Kafka, one broker."""

    def __init__(self) -> None:
        self.kafka = LocalKafka().start()
        self.bootstrap_servers = self.kafka.bootstrap_servers
        self.pids = [_listener(int(self.bootstrap_servers.rpartition(":")[2]))]

    def stop(self) -> None:
        self.kafka.stop()


class Tapping(_Command):
    """`shareq tap`, in front of a broker."""

    def __init__(self, upstream_servers: str) -> None:
        super().__init__("tap", upstream_servers)


class Relaying(_Module):
    """A relay that only passes bytes, in front of a broker."""

    def __init__(self, upstream_servers: str) -> None:
        super().__init__("tests.bench.bare_relay", upstream_servers)


Broker = Serving | Kafka
START: dict[str, type[Broker]] = {"shareq": Serving, "kafka": Kafka}


def _listener(port: int) -> int:
    """Id of the process that listens on a port of this machine."""
    wanted = f":{port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:] + _tcp6():
        fields = line.split()
        if fields[1].endswith(wanted) and fields[3] == "0A":
            return _holder(f"socket:[{fields[9]}]")
    raise LookupError(f"no process listens on port {port}")


def _tcp6() -> list[str]:
    return Path("/proc/net/tcp6").read_text().splitlines()[1:]


def _holder(socket: str) -> int:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(file.readlink()) == socket for file in (process / "fd").iterdir()):
                return int(process.name)
        except OSError:
            continue
    raise LookupError(socket)


def resident_mb(broker: Serving | Kafka | Tapping) -> int:
    """Resident memory of the broker's process, in MB."""
    status = "".join(Path(f"/proc/{pid}/status").read_text() for pid in broker.pids)
    return sum(int(kb) for kb in re.findall(r"VmRSS:\s+(\d+)", status)) // 1024
