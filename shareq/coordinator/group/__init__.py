"""The group coordinator, and what groups of all types share: ids, shards, deadlines, metadata."""
