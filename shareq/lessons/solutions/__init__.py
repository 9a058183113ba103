"""A solution of each exercise; `exercise(key).solution()` shows it after the last hint, and tests run all of them."""
