"""The page of one order: what goes from where to where after a request.

It is what the end-to-end tests see: `test_support/system/telemetry` has the spans of a trace, and
the lines that say which process records which event.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scripts.changes import ChangeError
from scripts.documentation.concepts.diagram import PADDING, BoxKind, Diagram, measure_longest
from scripts.documentation.markdown import code, join_parts
from shared.runtime.declarations import load_declarations
from test_support.system.telemetry import FOLDER, Pattern, SpanPath, load_file, read_paths

ACTS = {
    "an order is confirmed": "An order is confirmed",
    "an order is rejected": "The user's credit is not sufficient",
    "an order is cancelled": "A confirmed order is cancelled",
}
"""The acts of the case files that are shown, with the titles of their sections."""

HEADING_HEIGHT, STEP_HEIGHT, SPACE = 40.0, 30.0, 6.0


class Place(NamedTuple):
    """Where an arrow begins or ends."""

    name: str
    note: str
    kind: BoxKind


class Arrow(NamedTuple):
    source: Place
    target: Place
    label: str
    meaning: str


FILES = f"{FOLDER.name}/spans.toml and lines.toml"
CALLER = Place("caller", "", "process")


def write() -> str:
    return join_parts(
        "# One order as a sequence diagram",
        "The request is answered after the second step. All others happen without it: a process"
        " that ends within a step does it again later, and its effect is there once.",
        "Time goes from top to bottom. The steps are those of one trace. Others read the same"
        " topics, and are left out: read models, and after a cancellation the job of analytics,"
        " which takes the order out of its hour.",
        *(part for act, title in ACTS.items() for part in write_act(act, title)),
        "## Where this is from",
        "It is drawn from what the end-to-end tests expect of Jaeger and the logs"
        " ([test_telemetry.py](../e2e-tests/test_telemetry.py)). `make trace` shows the trace of a"
        " new order, and the [tour](../docs/tour.md) follows one. The rules are in"
        " [Architecture](../docs/architecture.md), all processes in [the system](system.md).",
    )


def write_act(act: str, title: str) -> Sequence[str]:
    arrows = list(list_arrows(act))
    steps = "".join(f"{number}. {each.meaning}\n" for number, each in enumerate(arrows, 1))
    return f"## {title}", draw(arrows, f"{title}: the steps that are listed below").to_html(), steps


def list_arrows(act: str) -> Iterator[Arrow]:
    """Yield the steps that follow a request, as the case files have them."""
    trace, lines = load_file("spans")[act]["trace"], load_file("lines")[act]["present"]
    return follow(trace, list_recorded(lines))


def list_recorded(lines: Sequence[Pattern]) -> Mapping[str, list[str]]:
    """List the types of the events that each process records."""
    recorded: dict[str, list[str]] = {}
    for line in lines:
        if line.get("message") == "recorded":
            recorded.setdefault(line["process"], []).append(line["event_type"])
    return recorded


def follow(trace: str, recorded: Mapping[str, Sequence[str]]) -> Iterator[Arrow]:
    """Yield the steps of a trace, in the order of its spans.

    A span that appends records the next event of its process; those below it, up to the next one
    that appends, hand on this event.

    Raises:
        ChangeError: a span is of no known kind, or the events are not those of the spans.
    """
    declarations = load_declarations()
    owners = {
        process.name: service.name
        for service in declarations.services
        for process in service.processes.values()
    }
    unrecorded = {process: [*types] for process, types in recorded.items()}
    events: dict[SpanPath, str] = {}
    for path in read_paths(trace):
        name, operation = path[-1].service, path[-1].operation
        verb, _, subject = operation.partition(" ")
        read = path[-2].operation.partition("send ")[2] if len(path) > 1 else ""
        process, database = to_place(name), Place(owners[name], "database", "database")
        event = events.get(path[:-1], "")
        if verb == "append" and unrecorded.get(name):
            event = unrecorded[name].pop(0)
            meaning = f"{code(name)} records {code(event)} and its outbox row, in one transaction."
            yield Arrow(process, database, event, meaning)
        elif verb == "send" and event in declarations.topics[subject].types:
            yield Arrow(database, process, event, f"{code(name)} reads the row of the outbox.")
            topic = Place(subject, "topic", "topic")
            yield Arrow(process, topic, event, f"It sends the event to {code(subject)}.")
        elif read:
            topic = Place(read, "topic", "topic")
            yield Arrow(topic, process, event, f"{code(name)} reads {code(event)}.")
            if verb != "process":
                meaning = f"It writes to its database: {code(operation)}."
                yield Arrow(process, database, operation, meaning)
        elif len(path) == 1:
            yield Arrow(CALLER, process, operation, f"{code(name)} gets {code(operation)}.")
        else:
            raise ChangeError(f"{FILES}: no event fits the span '{path[-1]}'")
        events[path] = event
    if any(unrecorded.values()):
        raise ChangeError(f"{FILES}: no span records an event of {unrecorded}")


def to_place(process: str) -> Place:
    """Return the place of a process, with its name in two lines."""
    length = process.rfind("-") + 1 or len(process)
    return Place(process[:length], process[length:], "process")


def draw(arrows: Sequence[Arrow], title: str) -> Diagram:
    """Draw places from left to right, as they are reached, and arrows from top to bottom."""
    diagram = Diagram(title)
    places = list(dict.fromkeys(place for each in arrows for place in (each.source, each.target)))
    width = 2 * PADDING + max(
        measure_longest([place.name for place in places], "name"),
        measure_longest([place.note for place in places]),
    )
    middles = {place: (width + SPACE) * number + width / 2 for number, place in enumerate(places)}
    bottom = HEADING_HEIGHT + STEP_HEIGHT * (len(arrows) + 0.5)
    diagram.reach(0, bottom)
    for place, x in middles.items():
        diagram.line(f"M{x:g} {HEADING_HEIGHT:g}V{bottom:g}", "lifeline")
        corner = x - width / 2, 0.0
        diagram.box(place.kind, corner, (width, HEADING_HEIGHT), place.name, place.note)
    for number, each in enumerate(arrows, 1):
        y = HEADING_HEIGHT + STEP_HEIGHT * number
        start, end = middles[each.source], middles[each.target]
        diagram.line(f"M{start:g} {y:g}H{end:g}")
        diagram.head((end, y), "right" if start < end else "left")
        diagram.text((min(start, end) + PADDING, y - 5), f"{number} {each.label}")
    return diagram
