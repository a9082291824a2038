"""What the diagrams of the site show is what services declare, what modules import, and what tests
expect of an order."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from scripts.changes import CHECKOUT, ChangeError
from scripts.documentation import concepts
from scripts.documentation.concepts import layered, modules, order, system
from scripts.documentation.concepts.diagram import (
    HEADS,
    LINE_HEIGHT,
    MIDDLE,
    Diagram,
    TextKind,
    measure,
)
from scripts.documentation.concepts.layered import Node, arrange, find_places, reduce
from scripts.documentation.concepts.modules import Module, read_modules, to_rooms
from scripts.documentation.concepts.order import ACTS
from shared.runtime.declarations import Declarations, load_declarations
from test_support.system.telemetry import load_cases

NUMBER = re.compile(r"-?[\d.]+")


class Box(NamedTuple):
    kind: str
    x: float
    y: float
    width: float
    height: float

    def has(self, x: float, y: float) -> bool:
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height


def read_end(path: str) -> float:
    """The last number of a path."""
    return float(NUMBER.findall(path)[-1])


def read_point(path: str) -> tuple[float, float]:
    """The point where a path begins."""
    x, y, *_ = map(float, NUMBER.findall(path))
    return x, y


class Shown:
    """The elements of a diagram."""

    def __init__(self, diagram: Diagram) -> None:
        html = diagram.to_html()
        self.svg = ElementTree.fromstring(html[html.index("<svg") : html.rindex("</figure>")])
        self.boxes = [
            Box(each.attrib["class"], *(float(each.attrib[name]) for name in Box._fields[1:]))
            for each in self.svg.iter("rect")
        ]
        self.texts = {
            each.text or "": (float(each.attrib["x"]), float(each.attrib["y"]))
            for each in self.svg.iter("text")
        }
        directions = {path: direction for direction, path in HEADS.items()}
        self.heads = [(x, y, directions[d[d.index("l") :]]) for d, x, y in self.paths("head")]
        self.dots = [
            (each.attrib["class"], float(each.attrib["cx"]), float(each.attrib["cy"]))
            for each in self.svg.iter("circle")
        ]

    def paths(self, kind: str) -> list[tuple[str, float, float]]:
        """The paths of a kind, each with its beginning."""
        found = [each.attrib["d"] for each in self.svg.iter("path") if each.attrib["class"] == kind]
        return [(path, *read_point(path)) for path in found]

    def find_box(self, text: str) -> Box:
        """The smallest box around the beginning of a text."""
        around = [box for box in self.boxes if box.has(*self.texts[text])]
        return min(around, key=lambda box: box.height)


def are_apart(boxes: Sequence[Box]) -> bool:
    return all(
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height < other.y
        or other.y + other.height < one.y
        for one, other in combinations(boxes, 2)
    )


# The system


def read_connections(shown: Shown, declarations: Declarations) -> set[tuple[str, str, str]]:
    """Read what connects processes with topics: (process, how, topic)."""
    columns = {x: name for name in declarations.topics for x in [shown.texts[name][0]]}
    assert {x for _, x, _ in shown.paths("channel")} == set(columns)
    found = set()
    for process in declarations.processes:
        box = shown.find_box(process.name)
        edge = box.x + box.width
        for kind, marks in (("line", ("dot",)), ("asking", ("ring",))):
            for path, *start in shown.paths(kind):
                if start[0] != edge or not box.has(*start):
                    continue
                here = [(x, mark) for x, y, mark in shown.heads if y == start[1]]
                writes = {x for x, direction in here if direction == "right"}
                is_read = (edge, "left") in here
                assert not (writes and is_read)
                dots = {x for mark, x, y in shown.dots if mark in marks and y == start[1]}
                assert max(writes | dots) == read_end(path)
                found |= {(process.name, "writes", columns[x]) for x in writes if kind == "line"}
                how = "asks" if kind == "asking" else "reads" if is_read else "nothing"
                found |= {(process.name, how, columns[x]) for x in dots}
    return found


def list_connections(declarations: Declarations) -> set[tuple[str, str, str]]:
    """List what is declared about processes and topics."""
    return {
        (process.name, how, topic)
        for process in declarations.processes
        for how, topics in (
            ("writes", process.writes),
            ("reads", process.reads),
            ("asks", {*process.describes, *(declarations.topics if process.observes else ())}),
        )
        for topic in {*topics} - ({*process.reads} if how == "asks" else set())
    }


def declare(folder: Path, **services: str) -> Declarations:
    for name, declared in services.items():
        (folder / name).mkdir()
        (folder / name / "service.toml").write_text(
            f'name = "{name}"\npackage = "{name}"\n{declared}'
        )
    return load_declarations(folder)


TOPIC = 'partitions = 3\nkey = "id"\ncontract = "a.contract"\ntypes = ["a-made"]\n'
CASES = {
    "a relay and a worker": {
        "a": f'[processes.relay]\nport = 1\nwrites = ["a.v1"]\n[processes.worker]\nport = 2\n'
        f'reads = ["b.v1"]\n[topics."a.v1"]\n{TOPIC}[topics."b.v1"]\n{TOPIC}'
    },
    "a process that does both": {
        "a": f'[processes.step]\nport = 1\nwrites = ["b.v1"]\nreads = ["a.v1"]\n'
        f'[topics."a.v1"]\n{TOPIC}[topics."b.v1"]\n{TOPIC}'
    },
    "one that asks for what it does not read": {
        "a": f'[processes.api]\nport = 1\nreads = ["a.v1"]\ndescribes = ["a.v1", "b.v1"]\n'
        f'[topics."a.v1"]\n{TOPIC}[topics."b.v1"]\n{TOPIC}',
        "c": "[processes.watch]\nport = 2\nobserves = true\n",
    },
    "no topic": {"a": "[processes.api]\nport = 1\n"},
}


@pytest.mark.parametrize("case", [None, *CASES])
def test_a_process_is_connected_with_the_topics_that_it_declares(
    tmp_path: Path, case: str | None
) -> None:
    declarations = declare(tmp_path, **CASES[case]) if case else load_declarations()

    shown = Shown(system.draw(declarations))

    assert read_connections(shown, declarations) == list_connections(declarations)


def test_a_process_is_in_the_frame_of_its_service() -> None:
    shown = Shown(system.draw(load_declarations()))

    frames = [box for box in shown.boxes if box.kind == "frame"]
    assert len(frames) == len(load_declarations().services)
    for frame, service in zip(frames, load_declarations().services, strict=True):
        within = {text for text, at in shown.texts.items() if frame.has(*at)}
        assert {service.folder, *(each.name for each in service.processes.values())} <= within
        inner = [box for box in shown.boxes if frame.has(box.x, box.y) and box != frame]
        assert all(frame.has(box.x + box.width, box.y + box.height) for box in inner)
        assert are_apart(inner)
        assert len([box for box in shown.boxes if frame.has(box.x, box.y)]) == 1 + len(
            service.processes
        )


def test_a_box_says_what_else_a_process_does(tmp_path: Path) -> None:
    declarations = declare(
        tmp_path,
        a='[processes.api]\nport = 1\npublic = true\ncalls = ["a"]\nneeds = ["event-stores"]\n'
        '[processes.tool]\nport = 2\nprofile = "on"\nneeds = ["spark"]\n'
        f'observes = true\n[database]\n[topics."a.v1"]\n{TOPIC}',
    )

    shown = Shown(system.draw(declarations))

    assert "HTTP 1, calls a-api, reads all event stores" in shown.texts
    assert "3 partitions" in shown.texts
    assert shown.find_box("a-api").kind == "process"
    assert shown.find_box("a-tool").kind == "requested"
    assert [*system.list_processes(declarations)] == [
        ("a", "database a", "`a-api`", "1", "", "", "", "calls a-api, reads all event stores"),
        ("a", "database a", "`a-tool`", "", "", "", "`a.v1`", "starts on request"),
    ]


LONG = "a-name-that-is-longer-than-all-others"


@pytest.mark.parametrize(
    "declared",
    [
        "[processes.api]\nname = 'a'\nport = 1\n[database]\n",
        f"[processes.api]\nname = '{LONG}'\nport = 1\n",
        "[processes.api]\nname = 'a'\nport = 1\npublic = true\nneeds = ['databases']\n",
    ],
    ids=["a database", "a process", "a note"],
)
def test_a_box_is_as_wide_as_its_texts(tmp_path: Path, declared: str) -> None:
    name, database = "notifications", "database notifications"
    shown = Shown(system.draw(declare(tmp_path, notifications=declared)))

    if database in shown.texts:
        assert shown.texts[name][0] + measure(name, "name") < (
            shown.texts[database][0] - measure(database)
        )
    for text, (x, _) in shown.texts.items():
        if text not in (database, "no database"):
            box = shown.find_box(text)
            kind: TextKind = "note" if text.startswith("HTTP") else "name"
            assert x + measure(text, kind) < box.x + box.width


def test_the_names_of_topics_are_apart(tmp_path: Path) -> None:
    topics = "".join(f"[topics.{name}]\n{TOPIC}" for name in "ab")
    shown = Shown(system.draw(declare(tmp_path, shop=f"[processes.api]\nport = 1\n{topics}")))

    assert shown.texts["a"][0] + measure("3 partitions") < shown.texts["b"][0]


# One order


def show(arrow: order.Arrow) -> str:
    ends = [
        place.name + (place.note if place.kind == "process" else f" {place.note}")
        for place in (arrow.source, arrow.target)
    ]
    return f"{ends[0]} → {ends[1]}: {arrow.label}"


def test_an_order_is_confirmed_in_steps_that_its_trace_and_its_events_have() -> None:
    assert [*map(show, order.list_arrows("an order is confirmed"))] == [
        "caller → orders-api: POST /v1/orders",
        "orders-api → orders database: order-placed",
        "orders database → orders-relay: order-placed",
        "orders-relay → orders.v1 topic: order-placed",
        "orders.v1 topic → users-worker: order-placed",
        "users-worker → users database: credit-reserved",
        "users database → users-relay: credit-reserved",
        "users-relay → users.v1 topic: credit-reserved",
        "users.v1 topic → orders-worker: credit-reserved",
        "orders-worker → orders database: order-confirmed",
        "orders database → orders-relay: order-confirmed",
        "orders-relay → orders.v1 topic: order-confirmed",
        "orders.v1 topic → analytics-job: order-confirmed",
        "analytics-job → analytics database: merge cell",
    ]


def test_the_steps_of_a_diagram_are_a_list_below_it() -> None:
    heading, diagram, steps = order.write_act("an order is confirmed", "A title")

    assert heading == "## A title"
    assert diagram.count(">caller</text>") == 1
    lines = steps.splitlines()
    assert lines[:5] == [
        "1. `orders-api` gets `POST /v1/orders`.",
        "2. `orders-api` records `order-placed` and its outbox row, in one transaction.",
        "3. `orders-relay` reads the row of the outbox.",
        "4. It sends the event to `orders.v1`.",
        "5. `users-worker` reads `order-placed`.",
    ]
    assert lines[-1] == "14. It writes to its database: `merge cell`."


def test_of_two_readers_each_continues_with_what_it_has_read() -> None:
    trace = """
users-api: POST /v1/users
  users-api: append user
    users-relay: send users.v1
      users-worker: process users.v1
        users-worker: append user
          users-relay: send users.v1
      orders-worker: process users.v1
"""
    recorded = {"users-api": ["user-registered"], "users-worker": ["user-moved"]}

    labels = [f"{each.target.name} {each.label}" for each in order.follow(trace, recorded)]

    assert labels[4:] == [
        "users- user-registered",
        "users user-moved",
        "users- user-moved",
        "users.v1 user-moved",
        "orders- user-registered",
    ]
    assert recorded["users-worker"] == ["user-moved"]


@pytest.mark.parametrize(
    ("recorded", "flaw"),
    [
        ({"users-api": ["user-moved"]}, None),
        ({}, "no event fits the span 'users-api: append user'"),
        ({"users-api": ["order-placed"]}, "no event fits the span 'users-relay: send users.v1'"),
        ({"users-api": ["user-moved", "user-moved"]}, "no span records an event of .*user-moved"),
        ({"users-api": ["user-moved"], "a": ["b"]}, "no span records an event of .*'a'"),
    ],
    ids=["they fit", "too few", "of another topic", "too many", "of another process"],
)
def test_events_that_do_not_fit_the_spans_are_refused(
    recorded: Mapping[str, list[str]], flaw: str | None
) -> None:
    trace = "users-api: POST /v1/users\n  users-api: append user\n    users-relay: send users.v1"

    with pytest.raises(ChangeError, match=flaw) if flaw else nullcontext():
        list(order.follow(trace, recorded))


def test_a_span_of_another_kind_is_refused() -> None:
    trace = "users-api: POST /v1/users\n  users-api: wait"

    with pytest.raises(ChangeError, match="no event fits the span 'users-api: wait'"):
        list(order.follow(trace, {}))


def test_a_process_has_its_name_in_two_lines() -> None:
    assert order.to_place("observer")[:2] == ("observer", "")
    assert order.to_place("a-b-c")[:2] == ("a-b-", "c")


@pytest.mark.parametrize("act", ACTS)
def test_every_event_that_an_act_records_is_in_its_diagram(act: str) -> None:
    present = load_cases("lines")[act].present
    recorded = [line["event_type"] for line in present if line.get("message") == "recorded"]

    assert Counter(
        arrow.label for arrow in order.list_arrows(act) if arrow.target.kind == "database"
    ) - Counter(["merge cell"]) == Counter(recorded)


def test_an_arrow_goes_from_the_line_of_its_source_to_that_of_its_target() -> None:
    arrows = list(order.list_arrows("an order is confirmed"))
    shown = Shown(order.draw(arrows, "a title"))
    lines = [x for _, x, _ in shown.paths("lifeline")]
    places = list(dict.fromkeys(place for each in arrows for place in (each.source, each.target)))
    assert [box.kind for box in shown.boxes] == [place.kind for place in places]
    assert lines == pytest.approx([box.x + box.width / 2 for box in shown.boxes])

    for number, (arrow, (_, start, y), (end, at, direction)) in enumerate(
        zip(arrows, shown.paths("line"), shown.heads, strict=True), 1
    ):
        assert (start, end) == (
            lines[places.index(arrow.source)],
            lines[places.index(arrow.target)],
        )
        assert y == at
        assert direction == ("right" if start < end else "left")
        x, above = shown.texts[f"{number} {arrow.label}"]
        assert min(start, end) < x < max(start, end)
        assert y - order.STEP_HEIGHT < above < y


# Modules


def test_the_modules_of_a_service_are_all_its_files() -> None:
    service = load_declarations().service("orders")

    found = read_modules(service.folder, service.package)

    src = CHECKOUT / service.folder / "src" / service.package
    files = {".".join(file.relative_to(src).with_suffix("").parts) for file in src.rglob("*.py")}
    assert {each for each in files if not each.endswith("__init__")} == {
        name for name, module in found.items() if module.path.suffix
    }
    assert all((CHECKOUT / module.path).exists() for module in found.values())
    worker = found["worker"]
    assert {"order.commands", "read_models", "user_messages"} <= worker.imports <= found.keys()
    assert {"inbox", "eventsourcing"} <= worker.shared <= set(read_rooms())


def read_rooms() -> Mapping[str, Module]:
    return to_rooms(read_modules("shared", "shared"))


def test_a_room_imports_what_its_modules_import_from_others() -> None:
    found = to_rooms(
        {
            "a": Module(Path("src/p/a.py"), frozenset({"b.c"}), frozenset({"web"})),
            "b.c": Module(Path("src/p/b/c.py"), frozenset({"b.d.e", "f"}), frozenset({"web"})),
            "b.d.e": Module(Path("src/p/b/d/e.py"), frozenset(), frozenset({"inbox"})),
            "f": Module(Path("src/p/f.py"), frozenset(), frozenset()),
        }
    )

    assert found == {
        "a": Module(Path("src/p/a.py"), frozenset({"b"}), frozenset({"web"})),
        "b": Module(Path("src/p/b"), frozenset({"f"}), frozenset({"web", "inbox"})),
        "f": Module(Path("src/p/f.py"), frozenset(), frozenset()),
    }


def test_a_room_is_among_the_modules_if_it_imports_something_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "__init__": "",
        "settings": "",
        "room/__init__": "from apart import settings\nfrom shared.web import auth\n",
        "room/inner": "",
        "other/__init__": "",
        "other/inner": "from apart.room import inner\nfrom apart.used import X\n",
        "used/__init__": "X = 1\n",
    }
    for name, text in files.items():
        file = tmp_path / "svc" / "src" / "apart" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "svc" / "src")
    monkeypatch.setattr(modules, "CHECKOUT", tmp_path)

    found = read_modules("svc", "apart")

    assert set(found) == {"settings", "room", "room.inner", "other.inner", "used"}
    path = Path("svc/src/apart/room")
    assert found["room"] == Module(path, frozenset({"settings"}), frozenset({"web"}))


def test_the_rooms_of_shared_are_its_folders() -> None:
    folders = [path.parent for path in (CHECKOUT / "shared/src/shared").glob("*/__init__.py")]

    assert {name: CHECKOUT / room.path for name, room in read_rooms().items()} == {
        folder.name: folder for folder in folders
    }


def test_a_module_is_described_by_the_first_line_of_its_docstring() -> None:
    assert modules.read_summary(Path("users-svc/src/users_svc/events.py")).startswith("What ")
    assert modules.read_summary(Path("shared/src/shared/outbox")).startswith("The transactional ")


def test_the_table_of_modules_has_all_that_they_import() -> None:
    path = Path("users-svc/src/users_svc/events.py")
    events = Module(path, frozenset(), frozenset({"web", "inbox"}))
    main = Module(path, frozenset({"events"}), frozenset())

    *_, rows = modules.write_package("shop", {"events": events, "main": main})

    assert rows.splitlines()[2:] == [
        f"| [`events`](../{path}) | {modules.read_summary(path)} |  | `inbox`, `web` |",
        f"| [`main`](../{path}) | {modules.read_summary(path)} | `events` |  |",
    ]


def test_of_services_without_an_event_store_rooms_are_shown() -> None:
    sections = dict(
        zip(
            *[iter(re.split(r"^## (.+)$", modules.write(), flags=re.MULTILINE)[1:])] * 2,
            strict=True,
        )
    )

    for service in load_declarations().services:
        found = read_modules(service.folder, service.package)
        names = found if service.has_event_store else to_rooms(found)
        assert re.findall(r"^\| \[`([^`]+)`\]", sections[service.folder], re.MULTILINE) == [*names]
    assert all(not room.shared for room in read_rooms().values())


def test_a_circle_of_imports_is_named() -> None:
    circle = {
        name: Module(Path(f"{name}.py"), frozenset(imported), frozenset())
        for name, imported in zip("abc", "bca", strict=True)
    }

    with pytest.raises(ChangeError, match=r"of shop import in a circle: .*(a → b|b → c)") as raised:
        list(modules.write_package("shop", circle))
    assert "b → a" not in str(raised.value)


def test_an_edge_that_follows_from_others_is_left_out() -> None:
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": set[str](), "d": set[str]()}

    assert reduce({name: frozenset(targets) for name, targets in graph.items()}) == {
        "a": frozenset({"b", "d"}),
        "b": frozenset({"c"}),
        "c": frozenset(),
        "d": frozenset(),
    }


GRAPHS: Mapping[str, layered.Graph] = {
    "nothing": {},
    "one module": {"a": frozenset()},
    "a passage": {"a": frozenset("bc"), "b": frozenset("d"), "c": frozenset(), "d": frozenset("c")},
    **{
        service.package: {
            name: module.imports
            for name, module in read_modules(service.folder, service.package).items()
        }
        for service in load_declarations().services
    },
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_an_arrow_goes_down_from_a_box_to_a_box(graph: layered.Graph) -> None:
    shown = Shown(layered.draw(graph, "a title"))

    boxes = {name: shown.find_box(name) for name in graph}
    assert len(shown.boxes) == len(graph)
    assert are_apart(shown.boxes)
    edges = [(name, each) for name in sorted(graph) for each in sorted(graph[name])]
    for (name, each), (path, x, y), (end, at, direction) in zip(
        edges, shown.paths("line"), shown.heads, strict=True
    ):
        upper, lower = boxes[name], boxes[each]
        assert (x, y) == pytest.approx((upper.x + upper.width / 2, upper.y + upper.height))
        assert (end, at) == pytest.approx((lower.x + lower.width / 2, lower.y))
        assert y < at
        assert direction == "down"
        passed = (at - upper.y) / (layered.BOX_HEIGHT + layered.ROW_SPACE) - 1
        assert path.count("V") == passed
        assert path.endswith(f"{end:g} {at:g}")


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_an_arrow_passes_no_box(graph: layered.Graph) -> None:
    nodes, edges = arrange(graph)
    places = find_places(nodes, edges)

    for one, other in combinations(nodes, 2):
        if one.row == other.row:
            apart = abs(places[one] - places[other])
            assert apart >= (one.width + other.width) / 2 + layered.BOX_SPACE - 1e-6
    for edge in edges:
        assert [node.row for node in edge] == [*range(edge[0].row, edge[-1].row + 1)]
        assert [bool(node.towards) for node in edge[1:-1]] == [True] * (len(edge) - 2)


def count_crossings(graph: layered.Graph, places: Mapping[Node, float]) -> int:
    _, edges = arrange(graph)
    links = [pair for edge in edges for pair in pairwise(edge)]
    return sum(
        (places[a] - places[c]) * (places[b] - places[d]) < 0
        for (a, b), (c, d) in combinations(links, 2)
        if a.row == c.row
    )


@pytest.mark.parametrize(
    "graph",
    [{"a": "f", "b": "e", "c": "d"}, {"a": "xz", "b": "y"}, {"a": "x", "b": "y", "c": "x"}],
    ids=["pairs", "one above two", "two above one"],
)
def test_boxes_are_sorted_so_that_arrows_do_not_cross(graph: Mapping[str, str]) -> None:
    names = {*graph, *"".join(graph.values())}
    whole = {name: frozenset(graph.get(name, "")) for name in names}
    nodes, edges = arrange(whole)

    assert count_crossings(whole, {node: ord(node.name) for node in nodes}) > 0
    assert count_crossings(whole, find_places(nodes, edges)) == 0


# All of them


@pytest.mark.parametrize("page", [*concepts.generate()])
def test_all_of_a_diagram_is_within_its_view(page: str) -> None:
    for html in re.findall("<figure.*</figure>", concepts.generate()[page]):
        svg = ElementTree.fromstring(html[html.index("<svg") : html.rindex("</figure>")])
        view = Box("view", *map(float, svg.attrib["viewBox"].split()))
        for each in svg.iter("rect"):
            x, y, width, height = (float(each.attrib[name]) for name in Box._fields[1:])
            assert view.has(x - 1, y - 1)
            assert view.has(x + width + 1, y + height + 1)
        for each in svg.iter("text"):
            end = measure(each.text or "") if each.attrib["text-anchor"] == "start" else 0
            assert view.has(float(each.attrib["x"]) + end, float(each.attrib["y"]))
        for path in svg.iter("path"):
            assert view.has(*read_point(path.attrib["d"]))
            if path.attrib["class"] == "lifeline":
                assert view.has(0, read_end(path.attrib["d"]))


def test_a_box_has_its_texts_halfway_down() -> None:
    diagram = Diagram('a "title" & more')
    diagram.box("process", (0, 0), (200, 50), "one")
    diagram.box("process", (0, 100), (200, 50), "two", "note")

    shown = Shown(diagram)

    middles = {text: y - MIDDLE for text, (_, y) in shown.texts.items()}
    assert middles == {"one": 25, "two": 125 - LINE_HEIGHT / 2, "note": 125 + LINE_HEIGHT / 2}
    kinds = [(each.text, each.attrib["class"]) for each in shown.svg.iter("text")]
    assert kinds == [("one", "name"), ("two", "name"), ("note", "note")]
    assert 'aria-label="a &quot;title&quot; &amp; more"' in diagram.to_html()


def test_the_pages_have_no_table_of_contents() -> None:
    assert "hide: [toc]" in concepts.generate()["concepts/.meta.yml"]
