"""The page: hours as a chart, one hour's split, and the state of the pipeline, kept up to date.

It is one HTML document. htmx, which comes with this package, fetches it again on each event of the
stream of changes, and replaces what differs; every choice is a link, so it works without htmx too.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, get_args
from urllib.parse import urlencode

import jinja2
from fastapi import APIRouter, Header
from fastapi.responses import HTMLResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from analytics_spark.job import job_lock
from analytics_spark.job.checkpoint import Offsets
from analytics_spark.serving import change_feed, hour_queries
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.chart import (
    MEASURES,
    TITLES,
    Chart,
    Measure,
    chart,
    format_number,
    get_number,
    money,
)
from analytics_spark.serving.dependencies import ResourcesDep, VisitorSlot
from analytics_spark.serving.hour_queries import (
    HOUR,
    Epoch,
    Split,
    Totals,
    get_lag,
    is_final,
)
from shared.runtime.postgres import Connection
from shared.web.field_types import Hour
from shared.web.limits import Rates

HOURS_SHOWN_MIN = 12
HOURS_SHOWN_MAX = 24
VALUES_SHOWN_MAX = 50
"""Of a split."""
STILL_SECONDS_MAX = 30
"""A job that commits nothing for so long, while records wait, makes no progress."""
REFRESH_SECONDS = 10
"""How often the page is fetched without an event: the lag changes, and whether a job runs."""

VISITORS = "visitors"
"""The key of the rate limit that all visitors share: the page has no callers with a name."""

SPLITS: Sequence[Split] = get_args(Split)
FILES = Path(__file__).parent / "web"
FILE_NAMES = ("page.css", "icon.svg", "vendor/htmx.min.js", "vendor/hx-sse.min.js")
PATHS = frozenset({"/", "/page/changes"} | {f"/page/{name}" for name in FILE_NAMES})
"""The paths that need no token when the page is enabled."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "style-src-attr 'unsafe-inline'",  # the heights of bars
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

ENDS_OF_CELLS = "SELECT min(hour) AS oldest, max(hour) AS newest FROM cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the visitor has chosen; each link is this with one value changed."""

    measure: Measure = "buyers"
    by: Split = "origin"
    hour: datetime | None = None
    """The hour that is split; None for the newest in the chart."""
    until: datetime | None = None
    """Where the chart ends; None for the newest hour."""

    def link(self, **changed: object) -> str:
        chosen = {
            name: getattr(self, name) for name in ("measure", "by", "hour", "until")
        } | changed
        texts = {name: to_text(value) for name, value in chosen.items() if value is not None}
        return f"/?{urlencode(texts)}"


def to_text(value: object) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A row of a split; `size` is the length of its bar as a fraction of the longest."""

    value: str
    totals: Totals
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """How far the job is, and whether it makes progress."""

    epoch: Epoch | None
    waiting: Mapping[str, int] | None
    """Records by topic; None when Kafka is unavailable."""
    job_runs: bool
    now: datetime

    @property
    def records_waiting(self) -> int:
        return sum((self.waiting or {}).values())

    @property
    def has_stopped(self) -> bool:
        return not self.job_runs or self.hangs

    @property
    def hangs(self) -> bool:
        """Whether a batch takes too long while records wait; without them nothing is committed."""
        return (
            self.epoch is not None
            and self.records_waiting > 0
            and self.seconds_since(self.epoch.committed_at) > STILL_SECONDS_MAX
        )

    def seconds_since(self, instant: datetime) -> int:
        return max(int((self.now - instant).total_seconds()), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The values that the page shows."""

    choice: Choice
    chart: Chart | None
    """None without any purchases."""
    split_hour: datetime | None
    split_is_final: bool
    parts: Sequence[Part]
    earlier: str | None
    later: str | None
    pipeline: Pipeline


async def read_view(resources: Resources, choice: Choice, now: datetime) -> View:
    """Read one snapshot of the database, and then the end offsets of the topics."""
    async with hour_queries.snapshot(resources.pool) as connection:
        epoch = await hour_queries.get_latest_epoch(connection)
        job_runs = await job_lock.is_held(connection)
        watermark = await hour_queries.get_watermark(connection)
        found = await connection.fetchrow(ENDS_OF_CELLS)
        assert found is not None  # an aggregate without GROUP BY always has a row
        shown: Chart | None = None
        split_hour: datetime | None = None
        parts: Sequence[Part] = ()
        earlier: str | None = None
        later: str | None = None
        if found["newest"] is not None:
            oldest, end = found["oldest"], found["newest"] + HOUR
            until = choice.until or end
            first = until - get_window(until - oldest)
            listed = await hour_queries.list_hours(
                connection, since=first, until=until, after=None, limit=HOURS_SHOWN_MAX
            )
            totals = {hour: each.local for hour, each in listed}
            shown = chart(first, until, totals, watermark, choice.measure)
            split_hour = choice.hour or max(totals, default=until - HOUR)
            parts = await read_parts(connection, split_hour, choice)
            earlier = choice.link(until=first, hour=None) if oldest < first else None
            later = later_link(choice, until, end)
    ends = await resources.topic_ends.current()
    return View(
        choice=choice,
        chart=shown,
        split_hour=split_hour,
        split_is_final=bool(split_hour and is_final(split_hour, watermark)),
        parts=parts,
        earlier=earlier,
        later=later,
        pipeline=Pipeline(
            epoch=epoch, waiting=count_waiting(ends, epoch), job_runs=job_runs, now=now
        ),
    )


def get_window(known: timedelta) -> timedelta:
    """The span of the chart, given the span of the data."""
    return min(max(known, HOUR * HOURS_SHOWN_MIN), HOUR * HOURS_SHOWN_MAX)


def later_link(choice: Choice, until: datetime, end: datetime) -> str | None:
    if until >= end:
        return None
    following = until + HOUR * HOURS_SHOWN_MAX
    return choice.link(until=following if following < end else None, hour=None)


async def read_parts(connection: Connection, hour: datetime, choice: Choice) -> Sequence[Part]:
    """The parts of an hour, largest first."""
    cells = await hour_queries.split_hour(connection, hour, choice.by)
    numbers = {value: get_number(totals, choice.measure) for value, totals in cells}
    longest = max(numbers.values(), default=0)
    parts = [
        Part(value=value, totals=totals, size=numbers[value] / longest if longest else 0)
        for value, totals in cells
    ]
    return sorted(parts, key=lambda part: (-part.size, part.value))


def count_waiting(ends: Offsets | None, epoch: Epoch | None) -> Mapping[str, int] | None:
    """Records after the last committed batch, by topic."""
    behind = get_lag(ends, epoch)
    if behind is None:
        return None
    return {topic: sum(partitions.values()) for topic, partitions in behind.items()}


def ago(seconds: int) -> str:
    """A time span in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def utc(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FILES),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"utc": utc, "money": money, "ago": ago}
TEMPLATES.globals |= {
    "MEASURES": MEASURES,
    "TITLES": TITLES,
    "SPLITS": SPLITS,
    "HOUR": HOUR,
    "VALUES_SHOWN_MAX": VALUES_SHOWN_MAX,
    "REFRESH_SECONDS": REFRESH_SECONDS,
    "format_number": format_number,
}


def routes(jaeger_ui_url: str | None, rates: Rates) -> Sequence[BaseRoute]:
    """The page, its stream of changes, and its files: all without a token.

    `rates` is the limit of all visitors together.
    """
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def show_page(
        service: ResourcesDep,
        measure: Measure = "buyers",
        by: Split = "origin",
        hour: Hour | None = None,
        until: Hour | None = None,
    ) -> Response:
        rates.demand(VISITORS)
        choice = Choice(measure=measure, by=by, hour=hour, until=until)
        view = await read_view(service, choice, datetime.now(UTC))
        html = TEMPLATES.get_template("page.html").render(view=view, jaeger_ui_url=jaeger_ui_url)
        return HTMLResponse(html, headers=HEADERS)

    @router.get("/page/changes", response_class=EventSourceResponse)
    async def stream_changes(
        feed: VisitorSlot,
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    ) -> AsyncIterator[ServerSentEvent]:
        """Events without data: the page fetches what it shows."""
        async for event in feed.events(change_feed.parse_position(last_event_id or "")):
            yield ServerSentEvent(
                event="changed", id=str(event.position) if event.position else "", raw_data="new"
            )

    return [*router.routes, Mount("/page", StaticFiles(directory=FILES))]
