"""Wrong answers of lesson 00."""


def nothing_changes() -> set[str]:
    return set()


WRONG = {
    "00.1": [
        (lambda: {"share.record.lock.duration.ms": 5_000}, "the brokers refuse this"),
        (lambda: {"share.delivery.count.limit": 2}, "and 16 were allowed"),
        (lambda: {"share.partition.max.record.locks": 4_000}, "and 16 were allowed"),
    ],
    "00.2": [
        (lambda: {"accepted", "deliveries"}, "look at accepted again: it stays at"),
        (nothing_changes, "look at deliveries again: it changes, from"),
        (lambda: {"lag"}, "'lag' is not one of the figures"),
    ],
    "00.3": [
        (lambda books: 0, "not 0: there were"),
        (lambda books: books.attempts[2], "the counts add up to"),
        (lambda books: sum(int(book.deliveries.sum()) for book in books.values()), "the counts add up to"),
    ],
    "00.4": [
        (lambda: 2, "with a limit of 2 the group archives 26 flights that are not poison"),
        (lambda: 5, "a limit of 5 is high enough, and so is 4"),
        (lambda: 1, "the brokers refuse this"),
    ],
}
