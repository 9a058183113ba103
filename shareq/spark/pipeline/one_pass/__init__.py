"""The tables of a trace in Python, where the events are few."""
