"""Wrong answers of lesson 18."""


def a_rest_after_the_last_try(first_ms: int, most_ms: int, limit: int) -> int:
    return sum(min(most_ms, first_ms << count) for count in range(limit))


def without_the_bound(first_ms: int, most_ms: int, limit: int) -> int:
    del most_ms
    return first_ms * ((1 << limit - 1) - 1)


def the_last_rest(first_ms: int, most_ms: int, limit: int) -> int:
    return min(most_ms, first_ms << limit - 2)


def all_that_wait(window: list[tuple[str, str]], in_flight: int) -> list[int]:
    del in_flight
    return [place for place, (_, state) in enumerate(window) if state == "waiting"]


def one_of_each_key(window: list[tuple[str, str]], in_flight: int) -> list[int]:
    del in_flight
    closed, allowed = {key for key, state in window if state == "held"}, []
    for place, (key, _) in enumerate(window):
        if key not in closed:
            closed.add(key)
            allowed.append(place)
    return allowed


def beside_what_is_held(window: list[tuple[str, str]], in_flight: int) -> list[int]:
    taken, allowed = dict[str, int](), []
    for place, (key, state) in enumerate(window):
        if taken.get(key, 0) < in_flight:
            taken[key] = taken.get(key, 0) + 1
            if state == "waiting":
                allowed.append(place)
    return allowed


def as_many_partitions_each(weights: list[int], members: int) -> list[list[int]]:
    return [[place for place in range(len(weights)) if place % members == member] for member in range(members)]


def everything_to_everybody(weights: list[int], members: int) -> list[list[int]]:
    return [list(range(len(weights)))] * members


def with_both_borders(weights: list[int], members: int) -> list[list[int]]:
    length, ends = sum(weights), [sum(weights[: place + 1]) * members for place in range(len(weights))]
    begins = [0, *ends[:-1]]
    return [
        [
            place
            for place in range(len(weights))
            if begins[place] <= (member + 1) * length and ends[place] >= member * length
        ]
        for member in range(members)
    ]


WRONG = {
    "18.1": [
        (a_rest_after_the_last_try, "after the first, and not"),
        (without_the_bound, "first rest 500 ms, at most 3,000 ms"),
        (the_last_rest, "after the first, and not"),
    ],
    "18.2": [
        (all_that_wait, "the leader delivered"),
        (one_of_each_key, "2 in flight"),
        (beside_what_is_held, "the leader delivered"),
    ],
    "18.3": [
        (as_many_partitions_each, "the pieces are"),
        (everything_to_everybody, "the pieces are"),
        (with_both_borders, "the pieces are"),
    ],
}
