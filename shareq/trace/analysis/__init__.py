"""Analysis of a journal: states, timelines, ledgers, lag, metrics, groups and exchanges, all folds of its entries."""
