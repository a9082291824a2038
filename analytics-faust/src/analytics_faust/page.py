"""The page `/`: where this answer and Spark's differ, and why. Its text is in `page.html`."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from analytics_faust.buyers import Hours, Totals
from analytics_faust.differences import EXPLANATIONS
from analytics_faust.worked_history import (
    MOVE_ANNOUNCED_AT_ONCE,
    MOVE_ANNOUNCED_LATE,
    Fact,
    Lives,
    count_by_arrival,
    count_by_event_time,
)

HOURS_SHOWN_MAX = 100

PAGE = Template(resources.files("analytics_faust").joinpath("page.html").read_text())


PATH = "/"


def route(hours: Hours | None) -> Route:
    """The page: the explanation, and the counted hours unless `hours` is None."""

    async def show(request: Request) -> Response:
        return HTMLResponse(render(hours))

    return Route(PATH, show)


def render(hours: Hours | None) -> str:
    return PAGE.substitute(
        histories=history_table("The move is announced at once", MOVE_ANNOUNCED_AT_ONCE)
        + history_table("The move is announced late", MOVE_ANNOUNCED_LATE),
        reasons=reasons_table(),
        hours="" if hours is None else hours_table(hours),
    )


def history_table(title: str, facts: Sequence[Fact]) -> str:
    here, spark = count_by_arrival(facts), count_by_event_time(facts)
    steps = "; ".join(describe(fact) for fact in facts)
    rows = [("here, by arrival", *amounts(here)), ("Spark, by event time", *amounts(spark))]
    return f"<h3>{escape(title)}</h3><p>In the order of arrival: {escape(steps)}.</p>" + table(
        ("", "local buyers", "purchases", "quantity", "amount"), rows, differs=here != spark
    )


def describe(fact: Fact) -> str:
    if isinstance(fact, Lives):
        return f"lives in {fact.address} since {fact.since:%H:%M}"
    return f"buys an {fact.item} at {fact.at:%H:%M}"


def reasons_table() -> str:
    rows = [
        (code.value, reason.what, reason.here, reason.spark)
        for code, reason in EXPLANATIONS.items()
    ]
    return table(("reason", "what happens", "here", "Spark"), rows)


def hours_table(hours: Hours) -> str:
    found = hours.list(since=None, until=None, after=None, limit=HOURS_SHOWN_MAX)
    rows = [(f"{hour:%Y-%m-%dT%H:%MZ}", *amounts(totals)) for hour, totals in found]
    head = ("hour", "local buyers", "purchases", "quantity", "amount")
    return f"<h2>The first {HOURS_SHOWN_MAX} hours as counted here</h2>" + table(head, rows)


def amounts(totals: Totals) -> tuple[int, int, int, str]:
    amount = f"{totals.cents // 100}.{totals.cents % 100:02}"
    return totals.local_buyers, totals.purchases, totals.quantity, amount


def table(head: Iterable[str], rows: Iterable[Iterable[object]], *, differs: bool = False) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    mark = ' class="differs"' if differs else ""
    body = "".join(f"<tr{mark}>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def cell(value: object) -> str:
    text = str(value)
    kind = ' class="number"' if text.replace(".", "").isdigit() else ""
    return f"<td{kind}>{escape(text)}</td>"
