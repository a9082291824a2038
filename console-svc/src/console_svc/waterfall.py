"""A trace of Jaeger's query API as rows: spans in the order of their start, under their parents."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

ROWS_MAX = 200
BAR_PERCENT_MIN = 0.4
"""A bar that is shorter would not be seen."""
COLOURS = 6
"""Of services; further ones begin again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A span. `left` and `width` are percents of the length of the trace."""

    service: str
    operation: str
    depth: int
    starts_at_milliseconds: float
    took_milliseconds: float
    left: float
    width: float
    colour: int
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    trace_id: str
    rows: Sequence[Row]
    services: Sequence[tuple[str, int]]
    """Each with the number of its colour, in the order of appearance."""
    milliseconds: float
    spans_left_out: int


def build_waterfall(trace: Json) -> Waterfall:
    """The rows of a trace, as `/api/traces/<id>` has it in `data`; at most ROWS_MAX."""
    names = {key: str(process["serviceName"]) for key, process in trace["processes"].items()}
    spans = sorted(trace["spans"], key=lambda span: span["startTime"])
    begin = spans[0]["startTime"]
    end = max(span["startTime"] + span["duration"] for span in spans)
    whole = max(end - begin, 1)
    ordered = order_by_parent(spans, trace["traceID"])
    colours: dict[str, int] = {}
    rows = []
    for span, depth in ordered[:ROWS_MAX]:
        service = names[span["processID"]]
        left = (span["startTime"] - begin) / whole * 100
        width = max(span["duration"] / whole * 100, BAR_PERCENT_MIN)
        rows.append(
            Row(
                service=service,
                operation=span["operationName"],
                depth=depth,
                starts_at_milliseconds=(span["startTime"] - begin) / 1000,
                took_milliseconds=span["duration"] / 1000,
                left=round(min(left, 100 - BAR_PERCENT_MIN), 2),
                width=round(min(width, 100 - min(left, 100 - BAR_PERCENT_MIN)), 2),
                colour=colours.setdefault(service, len(colours) % COLOURS),
                is_error=has_error(span),
            )
        )
    return Waterfall(
        trace_id=trace["traceID"],
        rows=rows,
        services=tuple(colours.items()),
        milliseconds=whole / 1000,
        spans_left_out=max(len(ordered) - ROWS_MAX, 0),
    )


def order_by_parent(spans: Sequence[Json], trace_id: str) -> list[tuple[Json, int]]:
    """Each span before its children, with its depth; one without a known parent is at the top."""
    known = {span["spanID"] for span in spans}
    children: dict[str | None, list[Json]] = defaultdict(list)
    for span in spans:
        parent = find_parent(span, trace_id)
        children[parent if parent in known else None].append(span)
    ordered: list[tuple[Json, int]] = []
    waiting = [(span, 0) for span in reversed(children[None])]
    while waiting:
        span, depth = waiting.pop()
        ordered.append((span, depth))
        waiting += [(child, depth + 1) for child in reversed(children[span["spanID"]])]
    return ordered


def find_parent(span: Json, trace_id: str) -> str | None:
    for reference in span.get("references", []):
        if reference["refType"] == "CHILD_OF" and reference["traceID"] == trace_id:
            return str(reference["spanID"])
    return None


def has_error(span: Json) -> bool:
    return any(
        tag["key"] == "error" and str(tag["value"]).lower() == "true" for tag in span["tags"]
    )


def reaches_the_cell(waterfall: Waterfall) -> bool:
    """Whether the trace goes all the way to the cell that counts the order."""
    return any(row.operation.startswith("merge cell") for row in waterfall.rows)
