"""The part of PromQL that the alerts use, evaluated over samples in memory.

promql-parser parses; what an expression means is https://prometheus.io/docs/prometheus/latest/querying/basics.
"""

import itertools
import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import promql_parser as promql

Labels = tuple[tuple[str, str], ...]
Vector = dict[Labels, float]
"""A value for each set of labels; a number has no labels."""
NAME = "__name__"
STALE = float("nan")
"""In place of a value: the series has ended."""
STALE_SECONDS = 300.0
"""How old the last sample of a series can be."""

AGGREGATES: Mapping[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}
COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "==": lambda left, right: left == right,
}
COMPUTED: Mapping[str, Callable[[float, float], float]] = {
    "-": lambda left, right: left - right,
    "+": lambda left, right: left + right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right if right else float("nan"),
}


@dataclass(slots=True)
class Samples:
    """Series by their labels, each a list of (time in seconds, value)."""

    series: dict[Labels, list[tuple[float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, at: float, name: str, labels: Mapping[str, str], value: float) -> None:
        self.series[to_labels({NAME: name, **labels})].append((at, value))

    def end_missing(self, at: float, labels: Mapping[str, str]) -> None:
        """Mark the series with these labels that have no sample of this time as stale, as
        Prometheus does after a scrape that did not return them."""
        wanted = set(to_labels(labels))
        for series, points in self.series.items():
            if wanted <= set(series) and points[-1][0] < at:
                points.append((at, STALE))


def to_labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def without_name(labels: Labels) -> Labels:
    return tuple(each for each in labels if each[0] != NAME)


def evaluate(expression: str, samples: Samples, now: float) -> Vector:
    """The value of an expression at one moment."""
    return Evaluation(samples, now).visit(promql.parse(expression))


class Unsupported(Exception):
    """An expression uses what no alert has used so far."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    samples: Samples
    now: float

    def visit(self, node: Any) -> Vector:
        match node:
            case promql.NumberLiteral():
                return {(): node.val}
            case promql.ParenExpr():
                return self.visit(node.expr)
            case promql.VectorSelector():
                return {labels: last[1] for labels, last in self.select(node).items()}
            case promql.AggregateExpr():
                return self.aggregate(node)
            case promql.Call():
                return self.call(node)
            case promql.BinaryExpr():
                return self.combine(str(node.op), self.visit(node.lhs), self.visit(node.rhs))
        raise Unsupported(type(node).__name__)

    def find(self, selector: Any) -> dict[Labels, list[tuple[float, float]]]:
        """The series that a selector matches."""
        wanted = list(selector.matchers.matchers)
        return {
            labels: points
            for labels, points in self.samples.series.items()
            if (NAME, selector.name) in labels
            and all(matches(each, dict(labels).get(each.name, "")) for each in wanted)
        }

    def select(self, selector: Any) -> dict[Labels, tuple[float, float]]:
        """The last sample of each series that is not stale."""
        found = {}
        for labels, points in self.find(selector).items():
            last = bisect_right(points, self.now, key=get_time) - 1
            if last < 0 or math.isnan(points[last][1]):
                continue
            if points[last][0] > self.now - STALE_SECONDS:
                found[labels] = points[last]
        return found

    def aggregate(self, node: Any) -> Vector:
        kept = set(node.modifier.labels) if node.modifier else set()
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in self.visit(node.expr).items():
            groups[tuple(each for each in labels if each[0] in kept)].append(value)
        combine = AGGREGATES[str(node.op)]
        return {labels: combine(values) for labels, values in groups.items()}

    def call(self, node: Any) -> Vector:
        match node.func.name, node.args:
            case "abs", [argument]:
                return {without_name(k): abs(v) for k, v in self.visit(argument).items()}
            case "timestamp", [promql.VectorSelector() as selector]:
                return {without_name(k): at for k, (at, _) in self.select(selector).items()}
            case ("rate" | "increase") as name, [promql.MatrixSelector() as matrix]:
                return self.increase(matrix, per_second=name == "rate")
        raise Unsupported(node.func.name)

    def increase(self, matrix: Any, *, per_second: bool) -> Vector:
        """As `increase`, from the first to the last sample, without extrapolation."""
        found = {}
        begin = self.now - matrix.range.total_seconds()
        for labels, points in self.find(matrix.vector_selector).items():
            first = bisect_left(points, begin, key=get_time)
            last = bisect_right(points, self.now, key=get_time)
            inside = [each for each in points[first:last] if not math.isnan(each[1])]
            if len(inside) < 2:
                continue
            pairs = itertools.pairwise(inside)
            # After a restart a counter begins at zero.
            grown = sum(b - a if b >= a else b for (_, a), (_, b) in pairs)
            seconds = inside[-1][0] - inside[0][0]
            found[without_name(labels)] = grown / seconds if per_second else grown
        return found

    def combine(self, operator: str, left: Vector, right: Vector) -> Vector:
        if operator == "or":
            return left | {labels: v for labels, v in right.items() if labels not in left}
        if operator == "and":
            known = {without_name(labels) for labels in right}
            return {labels: v for labels, v in left.items() if without_name(labels) in known}
        one, other = ({without_name(k): v for k, v in each.items()} for each in (left, right))
        # A number, which has no labels, is combined with each series of the other side.
        labels_of_both = (one.keys() | other.keys()) - {()} or {()}
        pairs = {k: (one.get(k, one.get(())), other.get(k, other.get(()))) for k in labels_of_both}
        found = {k: (a, b) for k, (a, b) in pairs.items() if a is not None and b is not None}
        if operator in COMPARED:
            return {k: a for k, (a, b) in found.items() if COMPARED[operator](a, b)}
        if operator in COMPUTED:
            return {k: COMPUTED[operator](a, b) for k, (a, b) in found.items()}
        raise Unsupported(operator)


def get_time(point: tuple[float, float]) -> float:
    return point[0]


def matches(matcher: Any, value: str) -> bool:
    match matcher.op:
        case promql.MatchOp.Equal:
            return bool(value == matcher.value)
        case promql.MatchOp.NotEqual:
            return bool(value != matcher.value)
        case promql.MatchOp.Re:
            return re.fullmatch(matcher.value, value) is not None
        case _:
            return re.fullmatch(matcher.value, value) is None
