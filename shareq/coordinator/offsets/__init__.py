"""The committed offsets of consumer and classic groups: commit, fetch, delete and expiry."""
