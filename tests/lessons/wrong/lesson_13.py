"""Wrong answers of lesson 13."""

from shareq.admin import Admin
from shareq.consumer import ShareConsumer

Acts = list[tuple[str, list[int]]]


def named(acts: Acts, wanted: str) -> set[int]:
    return {offset for what, offsets in acts if what == wanted for offset in offsets}


def not_acknowledged(acts: Acts) -> set[int]:
    return named(acts, "delivered") - named(acts, "acknowledged")


def not_committed(acts: Acts) -> set[int]:
    return named(acts, "acknowledged") - named(acts, "committed")


def everything(acts: Acts) -> set[int]:
    return named(acts, "delivered")


def polls(address: str, group: str) -> int:
    with ShareConsumer({"bootstrap.servers": address, "group.id": group}) as consumer:
        consumer.subscribe(["jobs"])
        return len(consumer.poll(10)) + len(consumer.poll(10)) + len(consumer.poll(10))


def from_the_start_offset(address: str, group: str) -> int:
    with Admin({"bootstrap.servers": address}) as admin:
        return 30 - (next(iter(admin.list_share_group_offsets(group).values())).start_offset or 0)


def partitions(address: str, group: str) -> int:
    with Admin({"bootstrap.servers": address}) as admin:
        return len(admin.list_share_group_offsets(group))


WRONG = {
    "13.1": [
        (not_acknowledged, "record 5 was delivered, acknowledged, and comes again"),
        (not_committed, "record 7 was delivered, and comes again"),
        (everything, "record 0 was delivered, acknowledged, committed, and does not come again"),
    ],
    "13.2": [
        (polls, "your answer has acquired records"),
        (from_the_start_offset, "not 29: of 30 records"),
        (partitions, "not 1: of 30 records"),
    ],
}
