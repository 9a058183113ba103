"""No circles of imports between files, those under TYPE_CHECKING included."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grimp
import pytest


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("shareq", "shareq_widgets", cache_dir=None)


def test_no_two_files_import_each_other(graph: grimp.ImportGraph) -> None:
    assert [in_words(graph, circle) for circle in circles(graph)] == []


def test_a_circle_is_found_and_described() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "e")):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"]]
    assert in_words(graph, ["a", "b", "c"]) == "a imports b, b imports c, c imports a"


def in_words(graph: grimp.ImportGraph, circle: list[str]) -> str:
    """Every import within the circle."""
    imports = [
        f"{importer} imports {imported}"
        for importer in circle
        for imported in sorted(graph.find_modules_directly_imported_by(importer) & set(circle))
    ]
    return ", ".join(imports)


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """The files that reach themselves by imports, grouped by circle: Kosaraju's strongly connected components."""
    finished: list[str] = []
    seen: set[str] = set()
    for module in sorted(graph.modules):
        finished += _reached(module, seen, graph.find_modules_directly_imported_by)
    seen = set()
    groups = [sorted(_reached(m, seen, graph.find_modules_that_directly_import)) for m in reversed(finished)]
    return sorted(group for group in groups if len(group) > 1)


def _reached(start: str, seen: set[str], neighbours: Callable[[str], set[str]]) -> list[str]:
    """The modules reachable from `start` that are not `seen` yet, each after those reachable from it."""
    if start in seen:
        return []
    seen.add(start)
    finished: list[str] = []
    path: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(neighbours(start))))]
    while path:
        for neighbour in path[-1][1]:
            if neighbour not in seen:
                seen.add(neighbour)
                path.append((neighbour, iter(sorted(neighbours(neighbour)))))
                break
        else:
            finished.append(path.pop()[0])
    return finished
