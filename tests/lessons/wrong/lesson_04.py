"""Wrong answers of lesson 04."""

from shareq.lessons import Office


def joins(office: Office) -> None:
    office.join("guest")


def joins_twice_and_leaves(office: Office) -> None:
    office.join("guest")
    office.cluster.advance(2_000)
    office.join("another").close()


def crashes(office: Office) -> None:
    office.cluster.crash(office.join("guest"))


WRONG = {
    "04.1": [
        (lambda: (10, 1), "not 10 members of a partition"),
        (lambda: (3, 1), "not 1 partitions of a member: 3 members of each partition make 12 places"),
        (lambda: (2, 1), "not 2 members of a partition"),
    ],
    "04.2": [
        (joins, "raised by 1, and should have been by 2"),
        (joins_twice_and_leaves, "raised by 3"),
        (crashes, "raised by 1, and should have been by 2"),
    ],
    "04.3": [
        (lambda: {"group.share.session.timeout.ms": 15_000}, "the brokers refuse this"),
        (lambda: {"group.share.min.session.timeout.ms": 15_000}, "is out after 45 s, 20 are allowed"),
        (
            lambda: {"group.share.min.session.timeout.ms": 30_000, "group.share.session.timeout.ms": 30_000},
            "is out after 30 s, 20 are allowed",
        ),
    ],
    "04.4": [
        (lambda: {"group.share.assignors": "simple"}, "a member fetches from 1 of the four partitions"),
        (lambda: {"group.share.assignors": "everyone"}, "the brokers refuse this"),
        (lambda: {"group.share.max.size": 3}, "a member fetches from 1 of the four partitions"),
    ],
}
