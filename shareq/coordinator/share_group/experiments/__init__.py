"""Experiments of the group coordinator, off by default. Rules: BEHAVIOUR.md."""
