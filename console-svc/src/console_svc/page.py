"""The pages of the console: one document each, rendered here; htmx fetches what is live again.

Every choice is a link and every action a form, so only live figures need JavaScript.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from console_svc.catalog import CONSOLE, JAEGER, KAFKA, Entry, list_relays
from console_svc.control import (
    BROKER_STOPPED_SECONDS,
    Busy,
    Control,
    NotThere,
    can_be_killed,
)
from console_svc.drawing import draw_narrow, draw_wide
from console_svc.guard import TOKEN, TOKEN_FIELD, Refused, read_form
from console_svc.journey import build_journey
from console_svc.metrics import History
from console_svc.orders import LOAD_PER_SECOND, LOAD_SECONDS, CallFailed, Shop
from console_svc.resources import build_resource, draw_large, list_resources
from console_svc.road import build_road
from console_svc.stack import NoControl, Stack
from console_svc.watch import Watch
from console_svc.waterfall import Waterfall, build_waterfall
from shared.runtime.declarations import Declarations
from shared.web import htmx
from shared.web.pages import create_headers, format_time_span

FILES = Path(__file__).parent / "web"
LOG_LINES_SHOWN = 60
ID_CHARACTERS_MAX = 64
REFRESH_MILLISECONDS = 2000
ANSWERS = "analytics-api"
"""The process whose page shows the hours."""

HEADERS = create_headers({"form-action": "'self'"}) | {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not `no-referrer`: with it, browsers send no origin with a form.
    "Referrer-Policy": "same-origin",
}


def ago(instant: datetime) -> str:
    return f"{format_time_span(max(int((datetime.now(UTC) - instant).total_seconds()), 0))} ago"


def milliseconds(value: float) -> str:
    return f"{value:,.1f} ms" if value < 1000 else f"{value / 1000:,.2f} s"


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"ago": ago, "uptime": format_time_span, "milliseconds": milliseconds}
TEMPLATES.globals |= {
    "TOKEN": TOKEN,
    "TOKEN_FIELD": TOKEN_FIELD,
    "REFRESH_MILLISECONDS": REFRESH_MILLISECONDS,
    "LOAD": f"{LOAD_PER_SECOND} orders/s for {LOAD_SECONDS} s",
    "BROKER_STOPPED": f"{BROKER_STOPPED_SECONDS:.0f} s",
    "KAFKA": KAFKA,
    "CONSOLE": CONSOLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """What the routes need."""

    declared: Declarations
    stack: Stack
    watch: Watch
    control: Control
    shop: Shop

    @property
    def links(self) -> Mapping[str, str]:
        """Where other pages are, by what they are called."""
        links = {entry.name: entry.link for entry in self.stack.entries}
        pages = {"hours": links.get(ANSWERS), "Jaeger": links.get(JAEGER)}
        documents = {
            f"{entry.name}": f"{entry.link}/docs"
            for entry in self.stack.entries
            if entry.has_document and not entry.on_request
        }
        return {name: link for name, link in {**pages, **documents}.items() if link}

    def find_entry(self, name: str) -> Entry | None:
        return next((entry for entry in self.stack.entries if entry.name == name), None)


def render(template: str, console: Console, status: int = 200, **values: object) -> HTMLResponse:
    html = TEMPLATES.get_template(template).render(links=console.links, **values)
    return HTMLResponse(html, status, HEADERS)


def see(path: str) -> RedirectResponse:
    """After a form: the page that shows what it did."""
    return RedirectResponse(path, 303, HEADERS)


async def show_overview(console: Console, request: Request) -> Response:
    view = await console.watch.look()
    road = build_road(console.declared, view.observed)
    return render(
        "overview.html",
        console,
        road=road,
        pictures=(draw_wide(road), draw_narrow(road)),
        resources=list_resources(
            console.stack.entries, view.observed, view.programs, view.histories
        ),
        actions=console.control.recent,
        load=console.control.find_running("load"),
        fault=console.control.find_running("fault"),
        relays=list_relays(console.declared),
        can_control=console.stack.can_control,
        get_command=console.stack.get_command,
        parked=view.parked,
        parked_counts=view.parked_counts,
        now=time.time(),
    )


async def show_process(console: Console, request: Request) -> Response:
    entry = console.find_entry(request.path_params["name"])
    if entry is None:
        return render("notice.html", console, 404, text="There is no such process.")
    view = await console.watch.look()
    charts = draw_large(view.histories.get(entry.name, History()))
    return render(
        "process.html",
        console,
        resource=build_resource(entry, view.observed, view.programs, charts),
        lines=console.stack.read_log(entry.name, LOG_LINES_SHOWN),
        actions=[each for each in console.control.recent if entry.name in each.title],
        fault=console.control.find_running("fault"),
        can_be_killed=can_be_killed(entry),
        can_control=console.stack.can_control,
        get_command=console.stack.get_command,
        now=time.time(),
    )


async def show_order(console: Console, request: Request) -> Response:
    order_id = str(request.path_params["order_id"])
    try:
        journey = build_journey(await console.shop.read_journey(order_id))
    except CallFailed as error:
        return render("notice.html", console, 502, text=f"The journey is not known: {error}")
    waterfall = await find_waterfall(console, journey.trace_id) if journey.trace_id else None
    return render("order.html", console, journey=journey, waterfall=waterfall, now=time.time())


async def show_trace(console: Console, request: Request) -> Response:
    trace_id = request.path_params["trace_id"]
    waterfall = await find_waterfall(console, trace_id) if is_trace_id(trace_id) else None
    return render("trace.html", console, trace_id=trace_id, waterfall=waterfall, now=time.time())


async def find_waterfall(console: Console, trace_id: str) -> Waterfall | None:
    trace = await console.shop.find_trace(trace_id)
    return build_waterfall(trace) if trace else None


async def follow(console: Console, request: Request) -> Response:
    """From an id that was pasted to the page of its order or its trace."""
    text = request.query_params.get("id", "").strip().lower()[:ID_CHARACTERS_MAX]
    if is_trace_id(text):
        return see(f"/traces/{text}")
    try:
        return see(f"/orders/{UUID(text)}")
    except ValueError:
        return render(
            "notice.html", console, 400, text="This is neither the id of an order nor of a trace."
        )


def is_trace_id(text: str) -> bool:
    """32 hexadecimal digits; the id of an order has hyphens."""
    return len(text) == 32 and set(text) <= set("0123456789abcdef")


async def place_order(console: Console, request: Request) -> Response:
    await read_form(request)
    return see(f"/orders/{quote(await console.shop.place_order())}")


async def act(console: Console, request: Request) -> Response:
    fields = await read_form(request)
    match request.path_params["action"]:
        case "load":
            console.control.begin_load()
        case "kill":
            console.control.begin_kill(fields.get("process", ""))
        case "stop-broker":
            console.control.begin_broker_stop()
        case _:
            raise NotThere("there is no such action")
    return see("/#tour")


FAILURES: Mapping[type[Exception], int] = {
    Busy: 409,
    CallFailed: 502,
    NoControl: 409,
    NotThere: 404,
    Refused: 403,
}

Handler = Callable[[Console, Request], Awaitable[Response]]


def route(
    path: str, console: Console, handler: Handler, methods: Sequence[str] = ("GET",)
) -> Route:
    """A route whose failures are shown as a page."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(console, request)
        except tuple(FAILURES) as error:
            return render("notice.html", console, FAILURES[type(error)], text=f"{error}")

    return Route(path, answer, methods=list(methods))


def routes(console: Console) -> list[BaseRoute]:
    add = partial(route, console=console)
    return [
        add("/", handler=show_overview),
        add("/processes/{name}", handler=show_process),
        add("/orders/{order_id:uuid}", handler=show_order),
        add("/traces/{trace_id}", handler=show_trace),
        add("/follow", handler=follow),
        add("/orders", handler=place_order, methods=("POST",)),
        add("/actions/{action}", handler=act, methods=("POST",)),
        Mount("/files/vendor", StaticFiles(directory=htmx.FILES)),
        Mount("/files", StaticFiles(directory=FILES)),
    ]
