"""Wrong answers of lesson 10."""


def twenty_means(times_ms: list[int]) -> float:
    return 20 * sum(times_ms) / len(times_ms)


def forty_times_the_longest(times_ms: list[int]) -> int:
    return 40 * max(times_ms)


def ten_times_the_longest(times_ms: list[int]) -> int:
    return 10 * max(times_ms)


WRONG = {
    "10.1": [
        (lambda: 6, "6 consumers are busy for 100% of the time"),
        (lambda: 16, "15 consumers are enough"),
        (lambda: 0, "consumers=0"),
    ],
    "10.2": [
        (twenty_means, "is too short"),
        (forty_times_the_longest, "is too long"),
        (ten_times_the_longest, "is too short"),
    ],
    "10.3": [
        (lambda rate, lock_ms, batch: rate * lock_ms, "record locks are more than 1.5 times as many"),
        (lambda rate, lock_ms, batch: rate * lock_ms / 1000, "are full before the lock ends"),
        (lambda rate, lock_ms, batch: 1_500, "100 records/s, a lock of 15 s: 1,500 record locks are full"),
    ],
}
