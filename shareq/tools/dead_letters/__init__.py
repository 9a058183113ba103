"""Dead-letter queues: what is in them, and the way back to the topics of their records.

`redrive` writes letters back exactly once: records and the note of what was redriven (`ledger`) are one transaction.
"""
