"""The log of a coordinator: shards, which are folds of it; turns, which append to it one after the other; its codec."""
