"""Groups of the classic protocol: members join, the leader computes the assignment, the coordinator distributes it."""
