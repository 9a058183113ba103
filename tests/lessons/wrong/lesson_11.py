"""Wrong answers of lesson 11."""

from typing import Any


def of_all_routes(routes: Any) -> Any:
    return routes["mean"].idxmax()


def the_busiest(routes: Any) -> Any:
    return routes["flights"].idxmax()


def its_place(routes: Any) -> Any:
    return tuple(routes.iloc[0].index[:2])


def first_deliveries(rows: Any) -> Any:
    return rows[rows.deliveryCount == 1].groupby("carrier").size().to_dict()


def different_values(rows: Any) -> Any:
    return rows.drop_duplicates(["carrier", "dep_delay"]).groupby("carrier").size().to_dict()


def without_the_partition(rows: Any) -> Any:
    return rows.drop_duplicates(["topic", "offset"]).groupby("carrier").size().to_dict()


WRONG = {
    "11.1": [
        (of_all_routes, "but it has only"),
        (the_busiest, "and there is one with 26.5"),
        (its_place, "is no route of the table"),
    ],
    "11.2": [
        (first_deliveries, "some only as a second delivery"),
        (different_values, "and you count 4"),
        (without_the_partition, "200 flights are in 260 rows"),
    ],
}
