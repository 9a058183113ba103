"""The way of dead letters back to the topics of their records.

`run` writes letters back exactly once: records and the note of what was redriven (`ledger`) are one transaction.
"""
