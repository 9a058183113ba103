"""Offsets that consumers commit: of groups of all types but share groups, kept as long as they may be wanted."""
