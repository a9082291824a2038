"""The answers over HTTP, read from a real database."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from analytics_spark.job import sink
from analytics_spark.job.batch import CellBatch, Tally
from analytics_spark.job.cells import DELTAS, KEY, VALUES
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.orders import SAMPLES
from analytics_spark.job.records import BAD
from analytics_spark.job.writer import open_writer
from analytics_spark.serving.api import create_app
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import Feed
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime import postgres
from shared.web.auth import RequestAuthenticator
from test_support.analytics.histories import HOUR, at, sample
from test_support.analytics.served import KnownEnds
from test_support.analytics.small_job import SmallJob

QUERY_ID = "5b0a4a0c-1a63-4f5e-9d2c-6a1a1f5d9c11"
TOTALS = {"local_buyers": 4, "purchases": 4, "quantity": 12, "amount": "44506.56"}
ALL = {"purchases": 16, "quantity": 55, "amount": "203588.40"}


def store_sample(dsn: str, checkpoint_dir: Path) -> None:
    """What the job makes of the sample, with a watermark in the middle of its hour."""
    job = SmallJob().read(*sample())
    deltas = [
        dict(zip(KEY + VALUES, cell + amounts, strict=True))
        for cell, amounts in job.cells().items()
    ]
    batch = CellBatch(
        query_id=QUERY_ID,
        batch_id=3,
        buckets=8,
        offsets={"orders.v1": {"0": [2, 10], "1": [0, 8]}},
        watermark=at(30),
        latest_order_at=at(30, hour=2),
        tally=Tally(counted=16, late=1, duplicates=2, bad=3),
        deltas=pa.Table.from_pylist(deltas, DELTAS),
        samples=SAMPLES.empty_table(),
        bad_records=BAD.empty_table(),
    )
    with open_writer(dsn, Checkpoint(checkpoint_dir), batch.buckets) as connection:
        assert sink.apply(connection, batch, "ab" * 16)


@pytest.fixture
async def api(
    tables: str, authenticator: RequestAuthenticator, issuing: RunFolder
) -> AsyncIterator[httpx.AsyncClient]:
    ends = KnownEnds({"orders.v1": {"0": 12, "1": 8, "2": 0}})
    async with postgres.open_pool(tables, name="test", connections_max=2) as pool:
        resources = Resources(pool=pool, topic_ends=ends, feed=Feed(pool, seconds_max=1))
        transport = httpx.ASGITransport(create_app(resources, authenticator))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://api", headers=bearer(issuing, "analyst")
        ) as client:
            yield client


@pytest.fixture
def stored_sample(tables: str, tmp_path: Path) -> None:
    store_sample(tables, tmp_path)


async def get(api: httpx.AsyncClient, path: str, **parameters: object) -> Mapping[str, Any]:
    response = await api.get(path, params={name: str(value) for name, value in parameters.items()})
    assert response.status_code == 200, response.text
    body: Mapping[str, Any] = response.json()
    return body


@pytest.mark.usefixtures("stored_sample")
async def test_hours_have_distinct_buyers_and_exact_amounts(api: httpx.AsyncClient) -> None:
    page = await get(api, "/v1/hours")

    assert page == {
        "hours": [{"hour": "2016-11-11T00:00:00Z", **TOTALS, "all": ALL, "final": False}],
        "next": None,
    }


@pytest.mark.usefixtures("stored_sample")
async def test_hours_are_limited_by_from_to_and_cursor(api: httpx.AsyncClient) -> None:
    def hours_of(page: Mapping[str, Any]) -> int:
        return len(page["hours"])

    assert hours_of(await get(api, "/v1/hours", **{"from": HOUR.isoformat()})) == 1
    assert hours_of(await get(api, "/v1/hours", to=HOUR.isoformat())) == 0
    full = await get(api, "/v1/hours", limit=1)
    assert full["next"] == "2016-11-11T00:00:00Z"
    assert hours_of(await get(api, "/v1/hours", after=full["next"], limit=1)) == 0


@pytest.mark.usefixtures("stored_sample")
@pytest.mark.parametrize(
    ("by", "amounts"),
    [
        ("origin", {"BJ": "16166.64", "SH": "14666.64", "SZ": "8006.64", "GZ": "5666.64"}),
        ("address", {"BJ": "16166.64", "SH": "14666.64", "SZ": "8006.64", "GZ": "5666.64"}),
        ("type", {"phone": "16166.64", "pad": "14666.64", "watch": "8006.64", "pod": "5666.64"}),
        ("gender", {"male": "24173.28", "female": "20333.28"}),
    ],
)
async def test_an_hour_can_be_split(
    api: httpx.AsyncClient, by: str, amounts: Mapping[str, str]
) -> None:
    hour = await get(api, "/v1/hours/2016-11-11T00:00:00Z", by=by)

    assert {cell[by]: cell["amount"] for cell in hour["cells"]} == amounts
    assert hour["by"] == by
    assert {name: hour[name] for name in TOTALS} == TOTALS


@pytest.mark.usefixtures("stored_sample")
async def test_an_hour_can_be_split_by_item(api: httpx.AsyncClient) -> None:
    hour = await get(api, "/v1/hours/2016-11-11T00:00:00Z", by="item")

    assert [cell["quantity"] for cell in hour["cells"]] == [3, 3, 3, 3]


async def test_an_hour_without_purchases_has_zeros(api: httpx.AsyncClient) -> None:
    hour = await get(api, "/v1/hours/2016-11-11T05:00:00Z", by="origin")

    assert hour == {
        "hour": "2016-11-11T05:00:00Z",
        "local_buyers": 0,
        "purchases": 0,
        "quantity": 0,
        "amount": "0.00",
        "all": {"purchases": 0, "quantity": 0, "amount": "0.00"},
        "final": False,
        "by": "origin",
        "cells": [],
    }


@pytest.mark.usefixtures("stored_sample")
async def test_an_hour_is_final_when_the_watermark_has_passed_its_end(
    api: httpx.AsyncClient,
) -> None:
    before = (HOUR - timedelta(hours=1)).isoformat()

    assert (await get(api, f"/v1/hours/{before}"))["final"] is True
    assert (await get(api, f"/v1/hours/{HOUR.isoformat()}"))["final"] is False


@pytest.mark.parametrize(
    "path",
    [
        "/v1/hours/2016-11-11T00:30:00Z",
        "/v1/hours/2016-11-11T00:00:00",
        "/v1/hours/today",
        "/v1/hours/2016-11-11T00:00:00Z?by=age",
        "/v1/hours/1478822400",
        "/v1/hours/0001-01-01T00:00:00+14:00",
        "/v1/hours/9999-12-31T23:00:00Z",
        "/v1/hours?from=0001-01-01T00:00:00%2B14:00",
        "/v1/hours?from=yesterday",
        "/v1/hours?limit=0",
    ],
)
async def test_a_malformed_request_is_refused(api: httpx.AsyncClient, path: str) -> None:
    response = await api.get(path)

    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"


async def test_requests_are_traced_and_health_checks_are_not(
    api: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    for path in ("/health/live", "/health/ready", "/v1/status"):
        assert (await api.get(path)).status_code == 200

    paths = [(span.attributes or {}).get("url.path") for span in spans.get_finished_spans()]
    assert paths == ["/v1/status"]


@pytest.mark.usefixtures("stored_sample")
async def test_the_status_shows_how_far_the_job_is(api: httpx.AsyncClient) -> None:
    status = await get(api, "/v1/status")

    assert status["last_batch"].pop("committed_at").endswith("Z")
    assert status == {
        "watermark": "2016-11-11T00:30:00Z",
        "last_batch": {"id": 3, "milliseconds": None, "trace_id": "ab" * 16, "orders": 16},
        "lag": {"orders.v1": {"0": 2, "1": 0, "2": 0}},
        "orders_counted": 16,
        "late_orders": 1,
        "duplicate_orders": 2,
        "bad_records": 3,
        "reconciliation": None,
    }


async def test_the_status_before_the_first_batch_is_all_zero(api: httpx.AsyncClient) -> None:
    status = await get(api, "/v1/status")

    assert status["last_batch"] is None
    assert status["orders_counted"] == 0
    assert status["lag"] == {"orders.v1": {"0": 12, "1": 8, "2": 0}}
