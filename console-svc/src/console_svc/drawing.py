"""Where the parts of a picture are: the road across a wide window or down a narrow one, and charts.

All lengths are in units of the picture itself, which a browser scales to its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from console_svc.road import Link, Node, Road

Pace = Literal["idle", "slow", "medium", "fast", "broken"]

MEDIUM_PER_SECOND = 5.0
FAST_PER_SECOND = 50.0
"""Events per second from which a hop is drawn faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node with its place."""

    node: Node
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A hop as the `d` of an SVG path."""

    path: str
    pace: Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    name: Literal["wide", "narrow"]
    width: float
    height: float
    headings: Sequence[Heading]
    boxes: Sequence[Box]
    lines: Sequence[Line]


WIDE_WIDTH, WIDE_GAP, WIDE_HEADING = 1160.0, 44.0, 30.0
WIDE_HEIGHT, WIDE_SPACE = 84.0, 22.0
NARROW_WIDTH, NARROW_GAP = 340.0, 8.0
NARROW_HEIGHT, NARROW_SPACE, NARROW_HEADING = 68.0, 26.0, 18.0


def draw_wide(road: Road) -> Picture:
    """Columns from left to right; shorter ones are centred."""
    number = len(road.columns)
    width = (WIDE_WIDTH - WIDE_GAP * (number - 1)) / number
    most = max(len(nodes) for _, nodes in road.columns)
    body = most * WIDE_HEIGHT + (most - 1) * WIDE_SPACE
    boxes, headings = [], []
    for column, (title, nodes) in enumerate(road.columns):
        x = column * (width + WIDE_GAP)
        headings.append(Heading(text=title, x=x, y=WIDE_HEADING / 2))
        step = body / max(len(nodes), 1)
        for row, node in enumerate(nodes):
            y = WIDE_HEADING + step * row + (step - WIDE_HEIGHT) / 2
            boxes.append(Box(node=node, x=x, y=round(y, 1), width=width, height=WIDE_HEIGHT))
    lines = [
        Line(path=curve_right(source, target), pace=get_pace(link))
        for link, source, target in place(road.links, boxes)
    ]
    return Picture(
        name="wide",
        width=WIDE_WIDTH,
        height=WIDE_HEADING + body,
        headings=headings,
        boxes=boxes,
        lines=lines,
    )


def draw_narrow(road: Road) -> Picture:
    """The columns as rows, from top to bottom."""
    boxes, headings = [], []
    y = 0.0
    for title, nodes in road.columns:
        headings.append(Heading(text=title, x=0, y=y + NARROW_HEADING / 2))
        y += NARROW_HEADING
        number = max(len(nodes), 1)
        width = (NARROW_WIDTH - NARROW_GAP * (number - 1)) / number
        for column, node in enumerate(nodes):
            x = round(column * (width + NARROW_GAP), 1)
            boxes.append(Box(node=node, x=x, y=y, width=round(width, 1), height=NARROW_HEIGHT))
        y += NARROW_HEIGHT + NARROW_SPACE
    lines = [
        Line(path=curve_down(source, target), pace=get_pace(link))
        for link, source, target in place(road.links, boxes)
    ]
    return Picture(
        name="narrow",
        width=NARROW_WIDTH,
        height=y - NARROW_SPACE,
        headings=headings,
        boxes=boxes,
        lines=lines,
    )


def place(links: Sequence[Link], boxes: Sequence[Box]) -> Iterator[tuple[Link, Box, Box]]:
    found = {box.node.id: box for box in boxes}
    for link in links:
        yield link, found[link.source], found[link.target]


def curve_right(source: Box, target: Box) -> str:
    x1, y1 = source.x + source.width, source.y + source.height / 2
    x2, y2 = target.x, target.y + target.height / 2
    middle = (x1 + x2) / 2
    return f"M{x1:.1f} {y1:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"


def curve_down(source: Box, target: Box) -> str:
    x1, y1 = source.x + source.width / 2, source.y + source.height
    x2, y2 = target.x + target.width / 2, target.y
    middle = (y1 + y2) / 2
    return f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"


def get_pace(link: Link) -> Pace:
    if link.is_broken:
        return "broken"
    if not link.rate:
        return "idle"
    if link.rate < MEDIUM_PER_SECOND:
        return "slow"
    return "medium" if link.rate < FAST_PER_SECOND else "fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Points over time, the newest at the right; a gap where there was no value."""

    width: float
    height: float
    strokes: Sequence[str]
    """The `points` of an SVG polyline for each part without a gap."""
    top: float
    """The value at the upper edge."""
    last: float | None


def draw_chart(
    points: Sequence[float | None], points_max: int, *, width: float, height: float
) -> Chart:
    """A chart from zero to the largest value. One point has no line: it is drawn as a short one."""
    top = max((point for point in points if point is not None), default=0.0)
    step = width / (points_max - 1)
    first = points_max - len(points)
    strokes: list[list[str]] = [[]]
    for number, point in enumerate(points, first):
        if point is None:
            strokes.append([])
            continue
        y = height - 1.5 - (point / top if top else 0.0) * (height - 3)
        strokes[-1].append(f"{number * step:.1f},{y:.1f}")
    for stroke in strokes:
        if len(stroke) == 1:
            x, _, same = stroke[0].partition(",")
            stroke.insert(0, f"{float(x) - step:.1f},{same}")
    return Chart(
        width=width,
        height=height,
        strokes=[" ".join(stroke) for stroke in strokes if stroke],
        top=top,
        last=points[-1] if points else None,
    )
