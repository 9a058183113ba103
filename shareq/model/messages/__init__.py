"""The messages of Kafka's protocol: passed as objects in process, encoded as bytes on the wire.

One module for each family, such as `share_fetch`, `share_state`, `share_group`, `cluster`, `data`, `topics`.
"""
