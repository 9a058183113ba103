"""Topic-partition logs in memory (append, read, trim) and the record codec."""
