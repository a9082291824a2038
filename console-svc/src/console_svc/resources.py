"""The list of processes: state, charts, and where each of them can be read further."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console_svc.catalog import Entry
from console_svc.drawing import Chart, draw_chart
from console_svc.metrics import POINTS_MAX, SCRAPES_MAX, History, Series
from console_svc.road import NOTHING_SEEN, Observation, State, format_number

SHOWN_IN_LIST = 3
"""Charts of a process in the list; its own page has all of them."""
SMALL, LARGE = (110.0, 26.0), (320.0, 90.0)
"""Width and height of a chart."""

UNIT_JOINED = ("/s",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A chart with its title, and its last value in words."""

    title: str
    value: str
    top: str
    chart: Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the supervisor knows of a process; None of all of it in containers."""

    state: str
    pid: int | None
    uptime_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    entry: Entry
    state: State
    obstacle: str
    pid: int | None
    uptime_seconds: int | None
    charts: Sequence[Drawn]


def list_resources(
    entries: Sequence[Entry],
    observed: Observation,
    programs: Mapping[str, Program],
    histories: Mapping[str, History],
) -> list[Resource]:
    """All processes, in the order of the catalog."""
    return [
        build_resource(entry, observed, programs, draw_small(histories.get(entry.name, History())))
        for entry in entries
    ]


def build_resource(
    entry: Entry,
    observed: Observation,
    programs: Mapping[str, Program],
    charts: Sequence[Drawn],
) -> Resource:
    seen = observed.get(entry.name, NOTHING_SEEN)
    program = programs.get(entry.name)
    return Resource(
        entry=entry,
        state=seen.state,
        obstacle=seen.obstacle,
        pid=program.pid if program else None,
        uptime_seconds=program.uptime_seconds if program else None,
        charts=charts,
    )


def draw_small(history: History) -> list[Drawn]:
    return [draw(*each, *SMALL) for each in list(history)[:SHOWN_IN_LIST]]


def draw_large(history: History) -> list[Drawn]:
    return [draw(*each, *LARGE) for each in history]


def draw(series: Series, points: Sequence[float | None], width: float, height: float) -> Drawn:
    """The value is the last one of the window of a rate: a duration without requests keeps it."""
    chart = draw_chart(points, POINTS_MAX, width=width, height=height)
    known = [point for point in points[-SCRAPES_MAX:] if point is not None]
    return Drawn(
        title=series.title,
        value=format_value(known[-1], series.unit) if known else "–",
        top=format_value(chart.top, series.unit),
        chart=chart,
    )


def format_value(value: float, unit: str) -> str:
    space = "" if unit in UNIT_JOINED else " "
    return f"{format_number(value)}{space}{unit}"


def get_state(
    *,
    responds: bool,
    obstacle: str,
    program: Program | None,
    on_request: bool,
) -> State:
    """The state of a process with an address: what it responds counts more than the supervisor."""
    if program is not None and program.state == "STOPPED" and on_request:
        return "off"
    if not responds:
        return "off" if on_request and program is None else "down"
    return "not ready" if obstacle else "up"


def get_server_state(reached: float | None, program: Program | None) -> State:
    """The state of a server that has no metrics of ours: by the supervisor, and who reads it."""
    if program is not None and program.state not in ("RUNNING", "STARTING"):
        return "down"
    if reached == 0:
        return "down"
    return "unknown" if reached is None and program is None else "up"
