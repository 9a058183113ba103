"""The oracle: a naive share-partition, which random tests and the lab "write your own leader" compare with."""

from shareq.lessons.oracle.naive_leader import Oracle, OracleWrite

__all__ = ["Oracle", "OracleWrite"]
