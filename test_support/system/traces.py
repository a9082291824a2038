"""A trace as Jaeger returns it: spans with their service, parent and links."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from test_support.system.clients import Json

PRINTED = ("app.", "error.", "http.response.", "messaging.destination.", "messaging.kafka.offset")
"""How the names of attributes begin that a waterfall can have."""


@dataclass(frozen=True, slots=True)
class Step:
    """A span by its service and name."""

    service: str
    operation: str

    def __str__(self) -> str:
        return f"{self.service}: {self.operation}"


@dataclass(frozen=True, slots=True)
class Span:
    span_id: str
    step: Step
    parent_id: str | None
    links: tuple[tuple[str, str], ...]
    """(trace id, span id) of other traces."""
    start_microseconds: int
    duration_microseconds: int
    attributes: Mapping[str, Any]


def spans_of(trace: Json) -> list[Span]:
    """The spans, in the order of their start."""
    services = {name: process["serviceName"] for name, process in trace["processes"].items()}
    spans = [
        span_of(each, services[each["processID"]], trace["traceID"]) for each in trace["spans"]
    ]
    return sorted(spans, key=lambda span: span.start_microseconds)


def span_of(span: Json, service: str, trace_id: str) -> Span:
    parents, links = [], []
    for reference in span.get("references", []):
        if reference["refType"] == "CHILD_OF" and reference["traceID"] == trace_id:
            parents.append(reference["spanID"])
        else:
            links.append((reference["traceID"], reference["spanID"]))
    return Span(
        span_id=span["spanID"],
        step=Step(service, span["operationName"]),
        parent_id=parents[0] if parents else None,
        links=tuple(links),
        start_microseconds=span["startTime"],
        duration_microseconds=span["duration"],
        attributes={each["key"]: each["value"] for each in span["tags"]},
    )


def edges_of(spans: list[Span]) -> set[tuple[Step, Step]]:
    """(parent, child) of all spans whose parent is in the trace."""
    by_id = {span.span_id: span for span in spans}
    return {(by_id[span.parent_id].step, span.step) for span in spans if span.parent_id in by_id}


def loose_ends_of(spans: list[Span]) -> list[Span]:
    """The spans without a parent in the trace: its first one, and each one after a gap."""
    ids = {span.span_id for span in spans}
    return [span for span in spans if span.parent_id not in ids]


def find_paths(spans: list[Span]) -> Mapping[str, tuple[Step, ...]]:
    """Find the steps to each span, by its id, from the first one that is in the trace."""
    by_id = {span.span_id: span for span in spans}
    paths: dict[str, tuple[Step, ...]] = {}
    for span in spans:
        above: Span | None = span
        path: list[Step] = []
        while above is not None:
            path.insert(0, above.step)
            above = by_id.get(above.parent_id or "")
        paths[span.span_id] = tuple(path)
    return paths


def is_counted(spans: list[Span]) -> bool:
    """Whether an order's trace goes all the way to the cell that counts it."""
    return any(span.step.operation == "merge cell" for span in spans)


def waterfall(spans: list[Span], *, with_attributes: bool = False) -> list[str]:
    """The trace as lines of text: when, how long, where, what; children are indented."""
    children: dict[str | None, list[Span]] = defaultdict(list)
    known = {span.span_id for span in spans}
    for span in spans:
        children[span.parent_id if span.parent_id in known else None].append(span)
    start = spans[0].start_microseconds
    lines: list[str] = []

    def add(parent: str | None, depth: int) -> None:
        for span in children[parent]:
            at = (span.start_microseconds - start) / 1000
            took = span.duration_microseconds / 1000
            where = f"{span.step.service:13}"
            line = f"{at:9.1f} ms {took:8.1f} ms  {where} {'  ' * depth}{span.step.operation}"
            if with_attributes:
                line += "".join(
                    f"  {name}={value}"
                    for name, value in span.attributes.items()
                    if name.startswith(PRINTED)
                )
            lines.append(line)
            add(span.span_id, depth + 1)

    add(None, 0)
    return lines
