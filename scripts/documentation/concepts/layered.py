"""Draw a graph without circles in rows: each node is below all that lead to it.

By the method of K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of
hierarchical system structures" (1981): an edge over several rows gets a passage in each of them,
and each row is sorted by the mean place of its neighbours above, then of those below, so that few
edges cross.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import groupby, pairwise
from statistics import fmean
from typing import NamedTuple

from scripts.documentation.concepts.diagram import PADDING, Diagram, measure

Graph = Mapping[str, frozenset[str]]
"""By the name of each node, those to which its edges lead."""

BOX_HEIGHT, BOX_SPACE, ROW_SPACE = 30.0, 12.0, 40.0
PASSAGE_WIDTH = 4.0


class Node(NamedTuple):
    """A box, or in a row between two boxes the passage of the edge from one `towards` another."""

    row: int
    name: str
    towards: str = ""

    @property
    def width(self) -> float:
        return PASSAGE_WIDTH if self.towards else measure(self.name, "name") + 2 * PADDING

    @property
    def top(self) -> float:
        return self.row * (BOX_HEIGHT + ROW_SPACE)


Edge = Sequence[Node]
"""From a box through passages to a box."""


def reduce(graph: Graph) -> Graph:
    """Return a graph without each edge that follows from others.

    Raises:
        graphlib.CycleError: edges make a circle.
    """
    reached: dict[str, frozenset[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        reached[name] = graph[name].union(*(reached[each] for each in graph[name]))
    return {
        name: frozenset(
            each for each in targets if not any(each in reached[other] for other in targets)
        )
        for name, targets in graph.items()
    }


def draw(graph: Graph, title: str) -> Diagram:
    """Raises graphlib.CycleError if edges make a circle."""
    nodes, edges = arrange(graph)
    places = find_places(nodes, edges)
    diagram = Diagram(title)
    for edge in edges:
        draw_edge(diagram, edge, places)
    for node in nodes:
        if not node.towards:
            corner = places[node] - node.width / 2, node.top
            diagram.box("module", corner, (node.width, BOX_HEIGHT), node.name)
    return diagram


def draw_edge(diagram: Diagram, edge: Edge, places: Mapping[Node, float]) -> None:
    """Draw an arrow from the first node to the last one."""
    path = f"M{places[edge[0]]:g} {edge[0].top + BOX_HEIGHT:g}"
    for upper, lower in pairwise(edge):
        halfway = lower.top - ROW_SPACE / 2
        start, end = f"{places[upper]:g}", f"{places[lower]:g}"
        path += f"C{start} {halfway:g} {end} {halfway:g} {end} {lower.top:g}"
        if lower.towards:
            path += f"V{lower.top + BOX_HEIGHT:g}"
    diagram.line(path)
    diagram.head((places[edge[-1]], edge[-1].top), "down")


def arrange(graph: Graph) -> tuple[Sequence[Node], Sequence[Edge]]:
    """Return the nodes from top to bottom, with the passages, and the edges."""
    rows = dict.fromkeys(graph, 0)
    for name in reversed([*TopologicalSorter(graph).static_order()]):
        for each in graph[name]:
            rows[each] = max(rows[each], rows[name] + 1)
    edges = [
        [
            Node(rows[name], name),
            *(Node(row, name, each) for row in range(rows[name] + 1, rows[each])),
            Node(rows[each], each),
        ]
        for name in sorted(graph)
        for each in sorted(graph[name])
    ]
    boxes = {Node(rows[name], name) for name in graph}
    return sorted(boxes.union(*edges)), edges


def find_places(nodes: Sequence[Node], edges: Sequence[Edge]) -> Mapping[Node, float]:
    """Return where the middle of each node is, from left to right."""
    rows = [list(row) for _, row in groupby(nodes, key=lambda node: node.row)]
    above, below = defaultdict[Node, list[Node]](list), defaultdict[Node, list[Node]](list)
    for edge in edges:
        for upper, lower in pairwise(edge):
            above[lower].append(upper)
            below[upper].append(lower)
    places: dict[Node, float] = {}

    def place(row: Sequence[Node]) -> None:
        x = -sum(node.width + BOX_SPACE for node in row) / 2
        for node in row:
            places[node] = x + node.width / 2
            x += node.width + BOX_SPACE

    def sort(row: list[Node], neighbours: Mapping[Node, Sequence[Node]]) -> None:
        row.sort(key=lambda node: fmean(places[each] for each in neighbours.get(node, [node])))
        place(row)

    for row in rows:
        place(row)
    # Once: a second time, no graph of the services has fewer crossings, and one has more.
    for row in rows:
        sort(row, above)
    for row in reversed(rows):
        sort(row, below)
    leftmost = min((places[node] - node.width / 2 for node in nodes), default=0.0)
    return {node: place - leftmost for node, place in places.items()}
