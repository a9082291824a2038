"""The picture's model: places as declared, figures as observed, and a verdict in one sentence."""

from collections.abc import Mapping

import pytest

from console_svc.metrics import Labels, Scrape, Window
from console_svc.road import Link, Node, Observation, Road, Seen, State, build_road, format_seconds
from shared.runtime.declarations import load_declarations
from test_support.first_services import is_added

DECLARED = load_declarations()
PROCESSES = [each.name for each in DECLARED.processes if each.profile is None]
SECONDS = 10.0

Values = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def label(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(labels.items())


def window(counters: Values, gauges: Values | None = None) -> Window:
    """Of two scrapes: counters have grown from zero to these values."""
    made = Window()
    for at, share in ((0.0, 0.0), (SECONDS, 1.0)):
        values: dict[str, dict[Labels, float]] = {}
        for (name, labels), value in counters.items():
            values.setdefault(name, {})[frozenset(labels)] = value * share
        for (name, labels), value in (gauges or {}).items():
            values.setdefault(name, {})[frozenset(labels)] = value
        made.scrapes.append(Scrape(at, values))
    return made


REACHED = {
    ("hometown_observer_reached", label(server=server)): 1.0
    for server in ("users", "orders", "analytics", "kafka")
}
LAGS = {
    ("hometown_consumer_lag", label(consumer="users-worker", topic="orders.v1", partition="0")): 0.0
}
EMPTY = {
    ("hometown_outbox_rows", label(database=database)): 0.0 for database in ("users", "orders")
}


def observe(changes: Observation | None = None, gauges: Values | None = None) -> Observation:
    """All is up and quiet, but for the changes, and these gauges of the observer."""
    quiet = {name: Seen(state="up", window=window({})) for name in PROCESSES}
    observer = Seen(state="up", window=window({}, {**REACHED, **LAGS, **EMPTY, **(gauges or {})}))
    return {**quiet, "observer": observer, **(changes or {})}


def node(road: Road, name: str) -> Node:
    [found] = [each for each in road.nodes if each.id == name]
    return found


def link(road: Road, source: str, target: str) -> Link:
    [found] = [each for each in road.links if (each.source, each.target) == (source, target)]
    return found


def test_the_road_has_the_places_that_services_declare() -> None:
    road = build_road(DECLARED, observe())

    assert [
        (title, [each.id for each in nodes if not is_added(each.id)])
        for title, nodes in road.columns
    ] == [
        ("APIs", ["users-api", "orders-api"]),
        ("event stores · PostgreSQL", ["users events", "orders events"]),
        ("relays", ["users-relay", "orders-relay"]),
        ("topics · Kafka", ["users.v1", "items.v1", "orders.v1"]),
        ("consumers", ["users-worker", "orders-worker", "analytics-job"]),
        ("answer", ["analytics-api"]),
    ]
    assert link(road, "orders.v1", "analytics-job")
    assert link(road, "analytics-job", "analytics-api")


def test_all_is_well_when_nothing_waits() -> None:
    road = build_road(DECLARED, observe())

    assert (road.verdict, road.is_well) == ("All is up, and nothing waits.", True)
    assert not [each.id for each in road.nodes if each.is_bad]


def test_each_hop_has_its_own_rate() -> None:
    relay = window(
        {
            ("hometown_relay_records_total", label(topic="orders.v1")): 50,
            ("hometown_relay_records_total", label(topic="items.v1")): 20,
        }
    )
    api = window({("hometown_append_events_total", label(category="order")): 30})
    road = build_road(
        DECLARED,
        observe(
            {
                "orders-relay": Seen(state="up", window=relay),
                "orders-api": Seen(state="up", window=api),
            }
        ),
    )

    assert link(road, "orders-api", "orders events").rate == 3
    assert link(road, "orders events", "orders-relay").rate == 7
    assert link(road, "orders-relay", "items.v1").rate == 2
    assert node(road, "orders.v1").facts[0] == "5 records/s"
    assert node(road, "users.v1").facts[0] == "0 records/s"
    assert road.verdict == "All is up, and events flow."


def test_a_relay_that_is_down_is_named_with_what_waits_for_it() -> None:
    waiting = {
        ("hometown_outbox_rows", label(database="users")): 37.0,
        ("hometown_outbox_age_seconds", label(database="users")): 8.0,
    }
    road = build_road(DECLARED, observe({"users-relay": Seen(state="down")}, waiting))

    assert road.verdict == "users-relay is down; 37 events wait in the outbox of users."
    assert not road.is_well
    assert node(road, "users-relay").state == "down"
    assert node(road, "users events").state == "WARN"
    assert node(road, "users events").facts[-1] == "37 wait 8.0 s"
    assert link(road, "users-relay", "users.v1").is_broken
    assert not link(road, "orders-relay", "orders.v1").is_broken


def test_what_waits_shortly_is_on_its_way() -> None:
    waiting = {
        ("hometown_outbox_rows", label(database="users")): 3.0,
        ("hometown_outbox_age_seconds", label(database="users")): 0.4,
    }
    road = build_road(DECLARED, observe(gauges=waiting))

    assert (road.verdict, road.is_well) == ("All is up; 3 events are on their way.", True)


@pytest.mark.parametrize(
    ("seen", "number", "state"),
    [
        ("up", 0, "OK"),
        ("up", 1, "WARN"),
        ("up", 2, "STALL"),
        ("up", 3, "STOP"),
        ("down", 3, "down"),
    ],
)
def test_the_state_of_a_consumer_is_that_of_the_observer_while_it_responds(
    seen: State, number: int, state: State
) -> None:
    gauges = {("hometown_consumer_state", label(consumer="users-worker")): float(number)}
    changes = {"users-worker": Seen(state=seen, window=window({}))}

    assert node(build_road(DECLARED, observe(changes, gauges)), "users-worker").state == state


def test_a_broker_that_cannot_be_reached_stops_all_topics() -> None:
    unreached = {("hometown_observer_reached", label(server="kafka")): 0.0}
    road = build_road(DECLARED, observe(gauges=unreached))

    assert node(road, "orders.v1").state == "down"
    assert road.verdict == "the broker cannot be reached."


def test_without_the_observer_lags_are_unknown_and_nothing_is_claimed() -> None:
    road = build_road(DECLARED, observe({"observer": Seen(state="down")}))

    assert node(road, "users-worker").facts[-1] == "lag –"
    assert node(road, "users events").state == "unknown"
    assert road.verdict == "observer is down."


def test_parked_streams_are_counted_in_the_verdict() -> None:
    parked = {("hometown_parked_streams", label(database="users", consumer="users-worker")): 1.0}

    assert build_road(DECLARED, observe(gauges=parked)).verdict == "1 stream is parked."


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0312, "31 ms"), (9.24, "9.2 s"), (90, "2 min"), (7200, "2 h")]
)
def test_a_time_is_shown_in_its_largest_unit(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words
