"""What a topic-partition is: append, read, trim. One interface, the log in memory behind it, and the record codec."""
