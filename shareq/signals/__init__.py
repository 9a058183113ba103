"""Signals: deferred while a state machine changes, looked for in waits, and as the end of a command."""
