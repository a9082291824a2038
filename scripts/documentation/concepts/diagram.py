"""Diagrams as SVG: boxes, texts, lines and arrows. `web/diagrams.css` has their colours and fonts.

Lengths are in pixels. A diagram becomes as large as what is in it; what is drawn first lies behind
what is drawn later.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal
from xml.etree import ElementTree

BoxKind = Literal["process", "requested", "database", "topic", "frame", "module"]
LineKind = Literal["line", "asking", "lifeline", "channel"]
TextKind = Literal["name", "note"]
Direction = Literal["left", "right", "down"]
Point = tuple[float, float]

LETTER_WIDTHS: Mapping[TextKind, float] = {"name": 7.9, "note": 7.3}
"""In the sizes of `web/diagrams.css`, and a font whose letters are equally wide."""
LINE_HEIGHT = 16.0
MIDDLE = 4.0
"""From the base line of a text up to its middle."""
PADDING = 8.0
MARGIN = 2.0
SHRUNK_MIN = 0.75
"""In a narrow window a diagram shrinks to this part of its size; then it is scrolled."""
HEAD = 8.0
"""The length of the head of an arrow."""
HEADS: Mapping[Direction, str] = {
    "left": f"l{HEAD} {-HEAD / 2}v{HEAD}z",
    "right": f"l{-HEAD} {-HEAD / 2}v{HEAD}z",
    "down": f"l{-HEAD / 2} {-HEAD}h{HEAD}z",
}


class Diagram:
    def __init__(self, title: str) -> None:
        """Begin a diagram; `title` says what it shows to readers who do not see it."""
        self._title = title
        self._svg = ElementTree.Element("svg")
        self._width = self._height = 0.0

    def box(
        self, kind: BoxKind, corner: Point, size: Point, name: str = "", note: str = ""
    ) -> None:
        """Draw a box with a name and, below it, a note: at its left, halfway down."""
        (x, y), (width, height) = corner, size
        self._add("rect", {"class": kind, "x": x, "y": y, "width": width, "height": height})
        self.reach(x + width, y + height)
        first = y + height / 2 + MIDDLE - (LINE_HEIGHT / 2 if note else 0)
        if name:
            self.text((x + PADDING, first), name, "name")
        if note:
            self.text((x + PADDING, first + LINE_HEIGHT), note)

    def text(
        self,
        at: Point,
        text: str,
        kind: TextKind = "note",
        anchor: Literal["start", "end"] = "start",
    ) -> None:
        """Draw a text on a base line from a point on, or up to it."""
        (x, y) = at
        self._add("text", {"class": kind, "x": x, "y": y, "text-anchor": anchor}, text)
        self.reach(x + (measure(text, kind) if anchor == "start" else 0), y + MIDDLE)

    def line(self, path: str, kind: LineKind = "line") -> None:
        """Draw a line along the `d` of a path, within what `reach` and all boxes span."""
        self._add("path", {"class": kind, "d": path})

    def head(self, tip: Point, direction: Direction) -> None:
        """Draw the head of an arrow."""
        self._add("path", {"class": "head", "d": f"M{tip[0]:g} {tip[1]:g}{HEADS[direction]}"})

    def dot(self, centre: Point, kind: Literal["dot", "ring"]) -> None:
        """Draw a dot, filled or not."""
        self._add("circle", {"class": kind, "cx": centre[0], "cy": centre[1], "r": HEAD / 2})

    def reach(self, x: float, y: float) -> None:
        """Make the diagram at least so large that a point is in it."""
        self._width, self._height = max(self._width, x), max(self._height, y)

    def to_html(self) -> str:
        """Return it as a block of one line, which Markdown leaves as it is."""
        width, height = self._width + 2 * MARGIN, self._height + 2 * MARGIN
        self._svg.set("viewBox", f"{-MARGIN:g} {-MARGIN:g} {width:g} {height:g}")
        self._svg.set("style", f"width: {width:g}px; min-width: {width * SHRUNK_MIN:g}px")
        drawn = ElementTree.tostring(self._svg, encoding="unicode")
        said = f'class="diagram" role="img" aria-label="{escape(self._title)}"'
        return f"<figure {said} data-search-exclude>{drawn}</figure>\n"

    def _add(self, tag: str, attributes: Mapping[str, object], text: str | None = None) -> None:
        written = {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in attributes.items()
        }
        ElementTree.SubElement(self._svg, tag, written).text = text


def measure(text: str, kind: TextKind = "note") -> float:
    """Return how wide a text can become."""
    return len(text) * LETTER_WIDTHS[kind]


def measure_longest(texts: Sequence[str], kind: TextKind = "note") -> float:
    """Return how wide the longest of some texts can become."""
    return max(measure(text, kind) for text in texts)
