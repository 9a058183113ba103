"""The group coordinator: members, epochs and assignments of share groups, and the offsets they start from."""
