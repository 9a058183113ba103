"""The share-partition leader: in-flight records, acquisition locks, share sessions, fetches and acknowledgements."""

from shareq.leader.leader import ShareLeader

__all__ = ["ShareLeader"]
