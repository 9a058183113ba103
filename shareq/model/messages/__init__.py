"""One vocabulary: clients and brokers speak in these messages, in process as they are, on the wire as bytes.

One module a family: `share_fetch`, `share_state`, `share_group`, `cluster`, `data`, `topics`.
"""
