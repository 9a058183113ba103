"""Metrics of a monitor for Prometheus, with rules for alerts and a dashboard of Grafana that use them."""

from __future__ import annotations

from importlib.resources import files

ALERTS = "alerts.yml"
DASHBOARD = "grafana_dashboard.json"


def example(name: str) -> str:
    """The text of an example: ALERTS or DASHBOARD."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
