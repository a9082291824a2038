"""Spans become rows: each under its parent, with its place in the whole."""

from typing import Any

from console_svc.waterfall import ROWS_MAX, build_waterfall, reaches_the_cell

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(
    name: str, start: int, duration: int, parent: str | None = None, **other: Any
) -> dict[str, Any]:
    reference = {"refType": "CHILD_OF", "traceID": TRACE, "spanID": parent}
    return {
        "spanID": name,
        "operationName": name,
        "processID": "p1",
        "startTime": 1_000_000 + start,
        "duration": duration,
        "references": [reference] if parent else [],
        "tags": [],
        **other,
    }


def trace(*spans: dict[str, Any]) -> dict[str, Any]:
    processes = {"p1": {"serviceName": "notes-api"}, "p2": {"serviceName": "notes-relay"}}
    return {"traceID": TRACE, "processes": processes, "spans": list(spans)}


def test_children_are_under_their_parent_in_the_order_of_their_start() -> None:
    waterfall = build_waterfall(
        trace(
            span("second", 400, 100, "root"),
            span("of first", 210, 10, "first"),
            span("root", 0, 1000),
            span("first", 200, 100, "root", processID="p2"),
        )
    )

    assert [(row.operation, row.depth) for row in waterfall.rows] == [
        ("root", 0),
        ("first", 1),
        ("of first", 2),
        ("second", 1),
    ]
    assert [(row.left, row.width) for row in waterfall.rows[:2]] == [(0, 100), (20, 10)]
    assert waterfall.services == (("notes-api", 0), ("notes-relay", 1))
    assert waterfall.milliseconds == 1


def test_a_span_whose_parent_is_not_there_is_at_the_top() -> None:
    waterfall = build_waterfall(trace(span("late", 5, 5, "unseen"), span("root", 0, 10)))

    assert [(row.operation, row.depth) for row in waterfall.rows] == [("root", 0), ("late", 0)]


def test_a_short_span_is_seen_and_stays_inside() -> None:
    waterfall = build_waterfall(trace(span("root", 0, 1_000_000), span("end", 1_000_000, 0)))

    end = waterfall.rows[1]
    assert end.width > 0
    assert end.left + end.width <= 100


def test_an_error_is_marked() -> None:
    tags = [{"key": "error", "value": True}]

    assert [row.is_error for row in build_waterfall(trace(span("a", 0, 1, tags=tags))).rows] == [
        True
    ]


def test_the_number_of_rows_is_bounded() -> None:
    many = [span(f"{number}", number, 1) for number in range(ROWS_MAX + 3)]

    waterfall = build_waterfall(trace(*many))

    assert (len(waterfall.rows), waterfall.spans_left_out) == (ROWS_MAX, 3)


def test_a_trace_is_whole_when_it_reaches_the_cell() -> None:
    assert reaches_the_cell(build_waterfall(trace(span("merge cell", 0, 1))))
    assert not reaches_the_cell(build_waterfall(trace(span("POST /v1/orders", 0, 1))))
