"""The HTTP API and the page, of a program that has counted but does not run."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from openapi_spec_validator import validate

from analytics_faust.api import Resources, create_app
from analytics_faust.service_clients import Spark
from analytics_faust.settings import FaustSettings
from analytics_faust.worker import Program
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.messaging.wire import OutgoingRecord
from shared.web.auth import RequestAuthenticator
from test_support.analytics.histories import HOUR

TOTALS = {"local_buyers": 1, "purchases": 2, "quantity": 4, "amount": "107.75"}
HOURS = 3


class Counted(Program):
    """A program that has counted; `counts_here` says whether it has the hours."""

    counts_here = True

    @property
    def has_hours(self) -> bool:
        return self.counts_here


async def nowhere(letters: Sequence[OutgoingRecord]) -> None:
    raise AssertionError("nothing is dead-lettered here")


@pytest.fixture
def program(tmp_path: Path) -> Counted:
    program = Counted(FaustSettings(environment="development", faust_dir=tmp_path), nowhere)
    for number in range(HOURS):
        lines = {"a:0": (2, 3, 100_25), "a:1": (2, 1, 7_50), "a:2": (3, 0, 0)}
        program.hours.change(HOUR + timedelta(hours=2 * number), {}, lines)
    return program


class SparkAnswers:
    """A fake of the other API: it returns `hours`, and records the requests."""

    def __init__(self) -> None:
        self.hours: list[dict[str, object]] = []
        self.status = 200
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.status != 200:
            return httpx.Response(self.status)
        limit = int(request.url.params["limit"])
        return httpx.Response(200, json={"hours": self.hours[:limit], "next": None})


@pytest.fixture
def spark() -> SparkAnswers:
    return SparkAnswers()


def application(
    program: Program,
    spark: SparkAnswers,
    authenticator: RequestAuthenticator,
    *,
    shows_hours: bool = True,
) -> FastAPI:
    client = httpx.AsyncClient(transport=httpx.MockTransport(spark))
    resources = Resources(
        program=program, spark=Spark(client, "http://spark"), shows_hours=shows_hours
    )
    return create_app(resources, authenticator)


@pytest.fixture
async def api(
    program: Program, spark: SparkAnswers, authenticator: RequestAuthenticator, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(program, spark, authenticator))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://api", headers=bearer(issuing, "analyst")
    ) as client:
        yield client


async def get(api: httpx.AsyncClient, path: str) -> Mapping[str, Any]:
    answer = await api.get(path)
    assert answer.status_code == 200, answer.text
    body: Mapping[str, Any] = answer.json()
    return body


def name(number: int) -> str:
    return f"2016-11-11T{number:02}:00:00Z"


async def test_hours_have_the_schema_of_analytics_spark(api: httpx.AsyncClient) -> None:
    page = await get(api, "/v1/hours?limit=1")

    assert page == {"hours": [{"hour": name(0), **TOTALS, "final": False}], "next": name(0)}
    rest = await get(api, f"/v1/hours?after={page['next']}")
    assert [each["hour"] for each in rest["hours"]] == [name(2), name(4)]
    assert rest["next"] is None


async def test_one_hour_and_one_without_purchases(api: httpx.AsyncClient) -> None:
    assert await get(api, f"/v1/hours/{name(2)}") == {"hour": name(2), **TOTALS, "final": False}
    assert (await get(api, f"/v1/hours/{name(9)}"))["purchases"] == 0


async def test_hours_that_are_equal_are_no_differences(
    api: httpx.AsyncClient, spark: SparkAnswers
) -> None:
    spark.hours = [{"hour": name(2 * number), **TOTALS} for number in range(HOURS)]

    assert await get(api, "/v1/differences") == {"hours": [], "next": None}


async def test_differences_show_both_answers_and_the_possible_reasons(
    api: httpx.AsyncClient, spark: SparkAnswers
) -> None:
    other = TOTALS | {"purchases": 3, "amount": "200.00"}
    spark.hours = [{"hour": name(0), **other}, {"hour": name(2), **TOTALS}]

    first, last = (await get(api, "/v1/differences"))["hours"]

    assert (first["hour"], first["here"], first["spark"]) == (name(0), TOTALS, other)
    assert "order-before-user" in first["reasons"]
    assert (last["hour"], last["spark"]["purchases"]) == (name(4), 0)


async def test_a_page_compares_as_far_as_both_sides_reach(
    api: httpx.AsyncClient, spark: SparkAnswers
) -> None:
    """Spark has an hour between ours: its page ends earlier, and the comparison with it."""
    spark.hours = [
        {"hour": name(0), **TOTALS},
        {"hour": name(1), **TOTALS},
        {"hour": name(2), **TOTALS},
    ]

    page = await get(api, "/v1/differences?limit=2")

    assert [each["hour"] for each in page["hours"]] == [name(1)]
    assert page["next"] == name(1)


async def test_spark_is_asked_for_the_same_hours_with_the_callers_token(
    api: httpx.AsyncClient, spark: SparkAnswers
) -> None:
    await get(api, f"/v1/differences?from={name(0)}&to={name(2)}&limit=7")

    [asked] = spark.asked
    query = asked.url.params
    assert (query["from"], query["to"], query["limit"]) == (
        "2016-11-11T00:00:00.000000Z",
        "2016-11-11T02:00:00.000000Z",
        "7",
    )
    assert asked.headers["authorization"] == api.headers["authorization"]


@pytest.mark.parametrize("status", [401, 500, 503])
async def test_without_sparks_answer_nothing_is_compared(
    api: httpx.AsyncClient, spark: SparkAnswers, status: int
) -> None:
    spark.status = status

    answer = await api.get("/v1/differences")

    assert (answer.status_code, answer.json()["code"]) == (503, "cannot-compare")
    assert str(status) in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/hours", f"/v1/hours/{name(0)}", "/v1/differences"])
async def test_a_worker_without_the_hours_answers_503(
    api: httpx.AsyncClient, program: Counted, path: str
) -> None:
    program.counts_here = False

    answer = await api.get(path)

    assert (answer.status_code, answer.json()["code"]) == (503, "hours-not-here")


@pytest.mark.parametrize("path", ["/v1/hours", "/v1/differences", "/v1/status"])
async def test_hours_need_the_scope(api: httpx.AsyncClient, issuing: RunFolder, path: str) -> None:
    assert (await api.get(path, headers=bearer(issuing, "user"))).status_code == 403
    assert (await api.get(path, headers={"Authorization": ""})).status_code == 401


async def test_lost_records_are_counted_in_the_status(
    api: httpx.AsyncClient, program: Program
) -> None:
    program.lost["orders_without_user"] += 2

    assert await get(api, "/v1/status") == {
        "orders_without_user": 2,
        "lines_without_item": 0,
        "bad_records": 0,
    }


async def test_the_page_is_open_and_explains(api: httpx.AsyncClient) -> None:
    answer = await api.get("/", headers={"Authorization": ""})

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>Where Faust and Spark differ, and why</title>" in answer.text
    for text in ("10777.76", "10277.76", "order-before-user", "107.75"):
        assert text in answer.text
    assert "<script" not in answer.text


async def test_outside_of_development_the_page_shows_no_hours(
    program: Program, spark: SparkAnswers, authenticator: RequestAuthenticator
) -> None:
    app = application(program, spark, authenticator, shows_hours=False)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        text = (await client.get("/")).text

    assert "10777.76" in text
    assert "107.75" not in text


def test_the_openapi_document_is_valid_and_names_each_refusal(
    program: Program, spark: SparkAnswers, authenticator: RequestAuthenticator
) -> None:
    document = application(program, spark, authenticator).openapi()
    validate(document)

    refused = document["paths"]["/v1/differences"]["get"]["responses"]["503"]
    assert "cannot-compare" in refused["description"]
    assert "/" not in document["paths"]
