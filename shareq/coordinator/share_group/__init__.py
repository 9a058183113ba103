"""Share groups, the subject of this project: members, heartbeats, assignment, initialization, offsets, records."""
