"""The road of an event as a picture's model: APIs, event stores, relays, topics, consumers, hours.

Its places follow from what the services declare, its figures from what was observed last; a pure
function of both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from console_svc.catalog import OBSERVER, has_road
from console_svc.metrics import Window
from shared.runtime.declarations import API, RELAY, Declarations, Service

APPENDED = "hometown_append_events_total"
PUBLISHED = "hometown_relay_records_total"
CONSUMED = "hometown_inbox_messages_total"
COUNTED = "hometown_job_orders_total"
REQUESTS = "http_server_request_duration_seconds_count"
LAG, CONSUMER_STATE = "hometown_consumer_lag", "hometown_consumer_state"
OUTBOX, OUTBOX_AGE = "hometown_outbox_rows", "hometown_outbox_age_seconds"
PARKED = "hometown_parked_streams"
REACHED = "hometown_observer_reached"
COMMIT_AGE = "hometown_job_commit_age_seconds"

BROKER = "kafka"
CONSUMER_STATES = ("OK", "WARN", "STALL", "STOP")
"""As the observer numbers them."""

OUTBOX_AGE_SECONDS_MAX = 5.0
"""Events that wait longer for their relay are worth a warning."""

State = Literal["up", "OK", "WARN", "STALL", "STOP", "not ready", "down", "off", "unknown"]

GOOD = ("up", "OK")
NEUTRAL = ("off", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was observed last of one process.

    `obstacle` is why it is not ready; `window` has its scrapes.
    """

    state: State
    obstacle: str = ""
    window: Window = field(default_factory=Window)


Observation = Mapping[str, Seen]
"""By the name of a process."""

NOTHING_SEEN = Seen(state="unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A place of the road. `title` names it, `about` what it is; `facts` are its figures."""

    id: str
    title: str
    about: str
    state: State
    facts: tuple[str, ...]
    process: str | None = None
    """The process that a click shows."""

    @property
    def is_bad(self) -> bool:
        return self.state not in (*GOOD, *NEUTRAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A hop between two places; `rate` is in events per second, None where it is not known."""

    source: str
    target: str
    rate: float | None
    is_broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """Columns from left to right, each with its heading and its nodes from top to bottom."""

    columns: Sequence[tuple[str, Sequence[Node]]]
    links: Sequence[Link]
    verdict: str
    is_well: bool

    @property
    def nodes(self) -> Iterator[Node]:
        return (node for _, nodes in self.columns for node in nodes)


def build_road(declared: Declarations, observed: Observation) -> Road:
    """The picture's model of what was observed."""
    observer = observed.get(OBSERVER, NOTHING_SEEN)
    senders = [service for service in declared.services if has_road(service)]
    readers = [service for service in declared.services if list_readers(service)]
    counters = [
        service for service in readers if not has_road(service) and service.database is not None
    ]
    columns = [
        ("APIs", [build_api(each, observed) for each in senders]),
        ("event stores · PostgreSQL", [build_store(each, observed) for each in senders]),
        ("relays", [build_relay(each, observed) for each in senders]),
        ("topics · Kafka", [each for sender in senders for each in build_topics(sender, observed)]),
        (
            "consumers",
            [
                build_consumer(service, name, observed)
                for service in readers
                for name in list_readers(service)
            ],
        ),
        ("answer", [build_answer(each, observed) for each in counters if API in each.processes]),
    ]
    nodes = {node.id: node for _, column in columns for node in column}
    links = list(build_links(declared, observed, nodes))
    verdict, is_well = judge(nodes, observer, observed)
    return Road(columns=columns, links=links, verdict=verdict, is_well=is_well)


def list_readers(service: Service) -> list[str]:
    """The processes of a service that consume topics and start with the others."""
    return [each.name for each in service.processes.values() if each.reads and not each.profile]


def build_api(service: Service, observed: Observation) -> Node:
    name = service.process_name(API)
    seen = observed.get(name, NOTHING_SEEN)
    flow = seen.window.flow
    return Node(
        id=name,
        title=name,
        about="decides on each request",
        state=seen.state,
        facts=(
            format_rate(flow(REQUESTS), "requests"),
            format_rate(flow(APPENDED), "events"),
        ),
        process=name,
    )


def build_store(service: Service, observed: Observation) -> Node:
    observer = observed.get(OBSERVER, NOTHING_SEEN).window
    rows = observer.total(OUTBOX, database=service.name)
    age = observer.largest(OUTBOX_AGE, database=service.name)
    reached = observer.total(REACHED, server=service.name)
    state: State = "unknown" if reached is None else "up" if reached else "down"
    if state == "up" and is_overdue(rows, age):
        state = "WARN"
    return Node(
        id=f"{service.name} events",
        title=f"{service.name} events",
        about="events and their outbox",
        state=state,
        facts=(
            format_rate(add(get_appends(service, observed)), "events"),
            format_outbox(rows, age),
        ),
    )


def is_overdue(rows: float | None, age: float | None) -> bool:
    return bool(rows) and age is not None and age > OUTBOX_AGE_SECONDS_MAX


def get_appends(service: Service, observed: Observation) -> list[float | None]:
    """The rate of each process of a service that records events."""
    return [
        observed.get(each.name, NOTHING_SEEN).window.flow(APPENDED)
        for each in service.processes.values()
    ]


def build_relay(service: Service, observed: Observation) -> Node:
    name = service.process_name(RELAY)
    seen = observed.get(name, NOTHING_SEEN)
    delay = seen.window.mean("hometown_relay_delay_seconds")
    return Node(
        id=name,
        title=name,
        about="publishes the outbox in order",
        state=seen.state,
        facts=(
            format_rate(seen.window.flow(PUBLISHED), "records"),
            "" if delay is None else f"{format_seconds(delay)} delay",
        ),
        process=name,
    )


def build_topics(service: Service, observed: Observation) -> list[Node]:
    observer = observed.get(OBSERVER, NOTHING_SEEN).window
    relay = observed.get(service.process_name(RELAY), NOTHING_SEEN).window
    reached = observer.total(REACHED, server=BROKER)
    state: State = "unknown" if reached is None else "up" if reached else "down"
    return [
        Node(
            id=topic.name,
            title=topic.name,
            about=f"{topic.partitions} partitions",
            state=state,
            facts=(
                format_rate(relay.flow(PUBLISHED, topic=topic.name), "records"),
                f"{topic.partitions} partitions",
            ),
        )
        for topic in service.topics.values()
    ]


def build_consumer(service: Service, name: str, observed: Observation) -> Node:
    seen = observed.get(name, NOTHING_SEEN)
    observer = observed.get(OBSERVER, NOTHING_SEEN).window
    is_counter = not has_road(service)
    consumed = seen.window.flow(COUNTED if is_counter else CONSUMED)
    return Node(
        id=name,
        title=name,
        about="counts orders per hour" if is_counter else "reacts to the events of others",
        state=get_consumer_state(seen, observer.largest(CONSUMER_STATE, consumer=name)),
        facts=(
            format_rate(consumed, "orders" if is_counter else "messages"),
            format_lag(observer.total(LAG, consumer=name)),
        ),
        process=name,
    )


def get_consumer_state(seen: Seen, number: float | None) -> State:
    """That of the observer, unless the process itself does not respond."""
    if seen.state != "up" or number is None:
        return seen.state
    states: tuple[State, ...] = ("OK", "WARN", "STALL", "STOP")
    return states[min(int(number), len(states) - 1)]


def build_answer(service: Service, observed: Observation) -> Node:
    name = service.process_name(API)
    seen = observed.get(name, NOTHING_SEEN)
    observer = observed.get(OBSERVER, NOTHING_SEEN).window
    age = observer.largest(COMMIT_AGE, database=service.name)
    return Node(
        id=name,
        title="hours",
        about=f"served by {name}",
        state=seen.state,
        facts=(
            format_rate(seen.window.flow(REQUESTS), "requests"),
            "" if age is None else f"counted {format_seconds(age)} ago",
        ),
        process=name,
    )


def build_links(
    declared: Declarations, observed: Observation, nodes: Mapping[str, Node]
) -> Iterator[Link]:
    """All hops, from left to right."""

    def link(source: str, target: str, rate: float | None) -> Link:
        broken = any(nodes[each].state in ("down", "STOP", "STALL") for each in (source, target))
        return Link(source=source, target=target, rate=rate, is_broken=broken)

    for service in filter(has_road, declared.services):
        api, relay = service.process_name(API), service.process_name(RELAY)
        store = f"{service.name} events"
        published = observed.get(relay, NOTHING_SEEN).window
        yield link(api, store, observed.get(api, NOTHING_SEEN).window.flow(APPENDED))
        yield link(store, relay, published.rate(PUBLISHED))
        for topic in service.topics:
            yield link(relay, topic, published.rate(PUBLISHED, topic=topic))
            for reader in declared.readers(topic):
                if reader in nodes:
                    consumed = observed.get(reader, NOTHING_SEEN).window.rate(CONSUMED, topic=topic)
                    rate = first_known(consumed, published.rate(PUBLISHED, topic=topic))
                    yield link(topic, reader, rate)
    for service in declared.services:
        if has_road(service) or service.database is None or API not in service.processes:
            continue
        for reader in list_readers(service):
            rate = observed.get(reader, NOTHING_SEEN).window.rate(COUNTED)
            yield link(reader, service.process_name(API), rate)


def judge(nodes: Mapping[str, Node], observer: Seen, observed: Observation) -> tuple[str, bool]:
    """The picture in one sentence, and whether all is well."""
    troubles = list(find_troubles(nodes, observer, observed))
    if troubles:
        return "; ".join(troubles) + ".", False
    lag = observer.window.total(LAG)
    if lag is None:
        return "The observer has measured nothing yet.", True
    waiting = int(lag + (observer.window.total(OUTBOX) or 0))
    moving = any(
        (node.state in GOOD) and has_flow(observed, node.process) for node in nodes.values()
    )
    if waiting:
        return f"All is up; {waiting:,} events are on their way.", True
    return ("All is up, and events flow." if moving else "All is up, and nothing waits."), True


def has_flow(observed: Observation, process: str | None) -> bool:
    window = observed.get(process or "", NOTHING_SEEN).window
    return any(window.rate(name) for name in (APPENDED, PUBLISHED, CONSUMED, COUNTED))


def find_troubles(
    nodes: Mapping[str, Node], observer: Seen, observed: Observation
) -> Iterator[str]:
    """What is wrong, the cause before its effects."""
    down = [name for name, seen in observed.items() if seen.state == "down"]
    if down:
        yield f"{join(down)} {'is' if len(down) == 1 else 'are'} down"
    unready = [name for name, seen in observed.items() if seen.state == "not ready"]
    if unready:
        yield f"{join(unready)} {'is' if len(unready) == 1 else 'are'} not ready"
    if BROKER not in down and observer.window.total(REACHED, server=BROKER) == 0:
        yield "the broker cannot be reached"
    for labels, rows in (
        observer.window.last.select(OUTBOX) if observer.window.last else {}
    ).items():
        database = dict(labels)["database"]
        if is_overdue(rows, observer.window.largest(OUTBOX_AGE, database=database)):
            yield f"{int(rows):,} events wait in the outbox of {database}"
    for node in nodes.values():
        if node.state in ("WARN", "STALL", "STOP") and node.process and node.process not in down:
            yield f"{node.title} is behind: {node.facts[-1]}"
    parked = int(observer.window.total(PARKED) or 0)
    if parked:
        yield f"{parked:,} {'stream is' if parked == 1 else 'streams are'} parked"


def join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def add(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def first_known(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def format_rate(rate: float | None, what: str) -> str:
    return f"– {what}/s" if rate is None else f"{format_number(rate)} {what}/s"


def format_number(value: float) -> str:
    """Short: a decimal where there is one, and none of what is large."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"


def format_seconds(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def format_lag(lag: float | None) -> str:
    return "lag –" if lag is None else f"lag {int(lag):,}"


def format_outbox(rows: float | None, age: float | None) -> str:
    if not rows:
        return "outbox –" if rows is None else "outbox empty"
    return f"{int(rows):,} wait" + ("" if age is None else f" {format_seconds(age)}")
