"""The page of the system: all processes, and the topics between them, as services declare them."""

from collections.abc import Iterator, Mapping, Sequence

from scripts.documentation.concepts.diagram import (
    LINE_HEIGHT,
    MIDDLE,
    PADDING,
    BoxKind,
    Diagram,
    Point,
    measure,
    measure_longest,
)
from scripts.documentation.markdown import code, codes, join_parts, table
from shared.runtime.declarations import (
    API,
    Declarations,
    Process,
    Service,
    Topic,
    load_declarations,
)

BOX_HEIGHT, BOX_SPACE = 42.0, 8.0
FRAME_HEADING, FRAME_SPACE = 28.0, 14.0
TOPICS_HEIGHT, TOPICS_SPACE = 44.0, 60.0
ARROWS_SPACE = 16.0
"""Between the arrow of what a process writes and that of what it reads."""

READS_OF_OTHERS: Mapping[str, str] = {
    "event-stores": "reads all event stores",
    "databases": "measures all databases",
}
"""By words of `needs`: what a process does with the databases of other services."""


def write() -> str:
    declarations = load_declarations()
    return join_parts(
        "# The system as a diagram",
        "A frame is a service, with its database and its processes: each can end and start by"
        " itself. A line from top to bottom is a topic of Kafka with public events.",
        "- An arrow to a topic: the process writes it.\n"
        "- A dot on a topic, and an arrow to the process: it reads the topic.\n"
        "- A dashed line with a ring: it asks how far the topic reaches, and reads nothing.\n"
        "- A dashed box: the process starts on request.",
        draw(declarations).to_html(),
        "It is drawn from the `service.toml` of each service."
        " [Architecture](../docs/architecture.md) describes it in words, [One order](order.md)"
        " follows an order through it, and [Topics](../reference/topics.md) lists the events, and"
        " also dead letter topics and internal ones.",
        table(
            ("service", "database", "process", "public port", "writes", "reads", "asks", "notes"),
            list_processes(declarations),
        ),
    )


def draw(declarations: Declarations) -> Diagram:
    """Draw services from top to bottom, and topics as lines along all of them."""
    diagram = Diagram("processes of all services, with the topics that they write and read")
    width = measure_boxes(declarations)
    edge = width + PADDING
    columns, x = dict[str, float](), edge + PADDING + TOPICS_SPACE
    for name, topic in declarations.topics.items():
        columns[name] = x
        x += max(measure(name, "name"), measure(describe_topic(topic))) + TOPICS_SPACE
    tops = list(find_tops(declarations.services))
    for name, topic in declarations.topics.items():
        diagram.text((columns[name], LINE_HEIGHT), name, "name")
        diagram.text((columns[name], 2 * LINE_HEIGHT), describe_topic(topic))
        path = f"M{columns[name]:g} {tops[0] - BOX_SPACE:g}V{tops[-1] - FRAME_SPACE:g}"
        diagram.line(path, "channel")
    for service, top, below in zip(declarations.services, tops, tops[1:], strict=False):
        diagram.box("frame", (0, top), (edge + PADDING, below - FRAME_SPACE - top))
        heading = top + FRAME_HEADING / 2 + MIDDLE
        diagram.text((PADDING, heading), service.folder, "name")
        diagram.text((edge, heading), describe_database(service), anchor="end")
        for number, process in enumerate(service.processes.values()):
            y = top + FRAME_HEADING + number * (BOX_HEIGHT + BOX_SPACE)
            kind: BoxKind = "process" if process.profile is None else "requested"
            note = describe(declarations, process)
            diagram.box(kind, (PADDING, y), (width, BOX_HEIGHT), process.name, note)
            connect(declarations, diagram, process, (edge, y + BOX_HEIGHT / 2), columns)
    return diagram


def measure_boxes(declarations: Declarations) -> float:
    """Return how wide the boxes of processes are, so that all texts fit into them and frames."""
    names = [process.name for process in declarations.processes]
    notes = [describe(declarations, process) for process in declarations.processes]
    headings = [
        measure(service.folder, "name") + measure(describe_database(service))
        for service in declarations.services
    ]
    return 2 * PADDING + max(measure_longest(names, "name"), measure_longest(notes), *headings)


def find_tops(services: Sequence[Service]) -> Iterator[float]:
    """Yield where each frame begins, and where another one would."""
    y = TOPICS_HEIGHT
    for service in services:
        yield y
        y += FRAME_HEADING + len(service.processes) * (BOX_HEIGHT + BOX_SPACE) + FRAME_SPACE
    yield y


def connect(
    declarations: Declarations,
    diagram: Diagram,
    process: Process,
    start: Point,
    columns: Mapping[str, float],
) -> None:
    """Draw arrows from a process to the topics that it writes, and from those that it reads."""
    edge, middle = start
    asked = list_asked(declarations, process)
    shift = ARROWS_SPACE / 2 if process.writes and (process.reads or asked) else 0
    if process.writes:
        y = middle - shift
        diagram.line(f"M{edge:g} {y:g}H{max(columns[name] for name in process.writes):g}")
        for name in process.writes:
            diagram.head((columns[name], y), "right")
    y = middle + shift
    if asked:
        diagram.line(f"M{edge:g} {y:g}H{max(columns[name] for name in asked):g}", "asking")
        for name in asked:
            diagram.dot((columns[name], y), "ring")
    if process.reads:
        diagram.line(f"M{edge:g} {y:g}H{max(columns[name] for name in process.reads):g}")
        diagram.head((edge, y), "left")
        for name in process.reads:
            diagram.dot((columns[name], y), "dot")


def list_asked(declarations: Declarations, process: Process) -> Sequence[str]:
    """List the topics whose ends a process asks for without reading them."""
    asked = declarations.topics if process.observes else process.describes
    return [name for name in asked if name not in process.reads]


def describe_topic(topic: Topic) -> str:
    return f"{topic.partitions} partitions"


def describe_database(service: Service) -> str:
    if service.database is None:
        return "no database"
    return f"{'event store' if service.has_event_store else 'database'} {service.name}"


def describe(declarations: Declarations, process: Process) -> str:
    """Return what a process does besides its work with topics, in one line."""
    port = [f"HTTP {process.port}"] if process.public else []
    return ", ".join([*port, *describe_others(declarations, process)])


def describe_others(declarations: Declarations, process: Process) -> Iterator[str]:
    """Yield what a process does with other services, but for topics."""
    if process.calls:
        yield "calls " + ", ".join(
            declarations.service(name).process_name(API) for name in process.calls
        )
    for word, meaning in READS_OF_OTHERS.items():
        if word in process.needs:
            yield meaning


def list_processes(declarations: Declarations) -> Iterator[Sequence[str]]:
    """Yield the rows of the table, which says what the diagram shows."""
    for service in declarations.services:
        for process in service.processes.values():
            on_request = ["starts on request"] if process.profile else []
            yield (
                service.folder,
                describe_database(service),
                code(process.name),
                str(process.port) if process.public else "",
                codes(process.writes),
                codes(process.reads),
                codes(list_asked(declarations, process)),
                ", ".join([*describe_others(declarations, process), *on_request]),
            )
