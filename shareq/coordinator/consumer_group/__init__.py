"""Consumer groups of the consumer rebalance protocol (KIP-848).

Members report the partitions that they own; the coordinator computes a target assignment and returns the partitions
that they may own. Each heartbeat takes its sender one step towards the target: it first revokes surplus partitions,
then gets partitions that are free. Members that are not affected continue to fetch during a rebalance.
"""
