"""The health of share groups of any Kafka: figures, verdicts and diagnoses, and the command `shareq observe`."""

from shareq.observer.health.monitor import Monitor, monitor
from shareq.observer.health.report import Diagnosis, GroupReport, Kind, PartitionReport, Report, Verdict

__all__ = ["Diagnosis", "GroupReport", "Kind", "Monitor", "PartitionReport", "Report", "Verdict", "monitor"]
