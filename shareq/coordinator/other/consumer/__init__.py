"""Consumer groups of the new protocol (KIP-848): members tell what they own, the coordinator tells what they shall own.

Nobody stops for a rebalance. The coordinator computes a target assignment, and each heartbeat brings its sender one
step nearer to it: first it gives up what it shall not have, then it takes what others have given up.
"""
