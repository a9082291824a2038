"""The page as it is sent: to whom, with what it shows, and what it says when there is nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from analytics_spark.job.batch import Tally
from analytics_spark.job.checkpoint import Checkpoint, Offsets
from analytics_spark.job.writer import open_writer
from analytics_spark.serving import page
from analytics_spark.serving.api import create_app
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import Feed
from analytics_spark.settings import ApiSettings
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime import postgres
from shared.web.auth import RequestAuthenticator
from shared.web.limits import Rates
from test_support.analytics.histories import HOUR, at
from test_support.analytics.served import BUCKETS, TRACE_ID, KnownEnds, Writer, purchase

LONG_SECONDS = 180
JAEGER = "http://127.0.0.1:16686"


class Words(HTMLParser):
    """What a page says, without its markup, and which ids and links it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.ids: set[str] = set()
        self.links: dict[str, str] = {}
        self._link: str | None = None
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        self._link = given.get("href") if tag == "a" else None

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"
        if self._link and data.strip():
            self.links[data.strip()] = self._link
            self._link = None


@pytest.fixture
def ends() -> Offsets:
    return {"orders.v1": {"0": 0}}


@pytest.fixture
async def resources(tables: str, ends: Offsets) -> AsyncIterator[Resources]:
    async with postgres.open_pool(tables, name="test", connections_max=2) as pool:
        yield Resources(pool=pool, topic_ends=KnownEnds(ends), feed=Feed(pool, seconds_max=1))


@pytest.fixture
async def visitor(
    resources: Resources, authenticator: RequestAuthenticator
) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a token."""
    app = create_app(resources, authenticator, page.routes(JAEGER, authenticator.rates))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://analytics"
    ) as client:
        yield client


@pytest.fixture
def writer(tables: str, tmp_path: Path) -> Iterator[Writer]:
    """A job runs as long as this is there."""
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        yield Writer(connection=connection)


async def seen(visitor: httpx.AsyncClient, query: str = "") -> Words:
    answer = await visitor.get(f"/{query}")
    assert answer.status_code == 200, answer.text
    return Words(answer.text)


def settings(**given: object) -> ApiSettings:
    password = "x" * 20
    address = f"postgresql://u:{password}@h/d"
    return ApiSettings.model_validate({"database_url": address, **given})


def test_the_page_exists_in_development_and_elsewhere_only_behind_a_proxy() -> None:
    assert settings(environment="development").has_page
    assert settings(page_behind_proxy=True).has_page
    assert not settings().has_page


async def test_without_the_setting_there_is_no_page(
    resources: Resources, authenticator: RequestAuthenticator, issuing: RunFolder
) -> None:
    transport = httpx.ASGITransport(create_app(resources, authenticator))
    async with httpx.AsyncClient(transport=transport, base_url="http://analytics") as client:
        for path in page.PATHS:
            assert (await client.get(path)).status_code == 401
            known = await client.get(path, headers=bearer(issuing, "analyst"))
            assert (known.status_code, known.json()["code"]) == (404, "not-found")


@pytest.mark.parametrize("path", ["/v1/hours", "/v1/stream", "/page", "/page/page.html", "/page/x"])
async def test_nothing_but_the_page_is_open(visitor: httpx.AsyncClient, path: str) -> None:
    assert (await visitor.get(path)).status_code == 401


async def test_each_file_of_the_page_comes_from_here(visitor: httpx.AsyncClient) -> None:
    for name in page.FILE_NAMES:
        assert (await visitor.get(f"/page/{name}")).status_code == 200
    html = (await visitor.get("/")).text
    assert JAEGER not in html
    assert "http" not in html.replace("http-equiv", "")


async def test_visitors_have_a_rate_limit(
    resources: Resources, authenticator: RequestAuthenticator
) -> None:
    transport = httpx.ASGITransport(
        create_app(resources, authenticator, page.routes(None, Rates(1)))
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://analytics") as client:
        statuses = [(await client.get("/")).status_code for _ in range(5)]

    assert statuses[0] == 200
    assert statuses[-1] == 429


async def test_the_headers_allow_no_third_party_resources(
    visitor: httpx.AsyncClient,
) -> None:
    policy = (await visitor.get("/")).headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


async def test_an_empty_page_shows_what_to_do(visitor: httpx.AsyncClient, writer: Writer) -> None:
    words = await seen(visitor)

    assert "Nothing is counted yet. make demo loads a sample" in words.text
    assert "job-down" not in words.ids


async def test_an_hour_is_provisional_until_the_watermark_has_passed_it(
    visitor: httpx.AsyncClient, writer: Writer
) -> None:
    writer.commit(purchase(HOUR), watermark=at(59))
    before = (await visitor.get("/")).text
    writer.commit(watermark=at(60))
    after = (await visitor.get("/")).text

    title = "2016-11-11 00:00 UTC: 1 local buyers, "
    assert f"{title}provisional" in before
    assert f"{title}final" in after


async def test_the_split_shows_each_value_the_largest_first(
    visitor: httpx.AsyncClient, writer: Writer
) -> None:
    lily = purchase(HOUR, "Lily", address="SH", gender="female", cents=20_000_00)
    writer.commit(purchase(HOUR), lily)

    by_origin = await seen(visitor, "?measure=amount")
    by_gender = await seen(visitor, by_origin.links["gender"].lstrip("/"))

    assert "SH 1 1 3 20,000.00 BJ 1 1 3 16,166.64" in by_origin.text
    assert "female 1 1 3 20,000.00 male 1 1 3 16,166.64" in by_gender.text
    assert "Amount spent locally by hour" in by_gender.text


async def test_older_hours_are_a_page_away_and_back(
    visitor: httpx.AsyncClient, writer: Writer
) -> None:
    writer.commit(purchase(HOUR), purchase(HOUR + timedelta(hours=30)))

    newest = await seen(visitor)
    earlier = await seen(visitor, newest.links["‹ earlier"].lstrip("/"))
    back = await seen(visitor, earlier.links["later ›"].lstrip("/"))

    hour = f"hour-{HOUR.timestamp():.0f}"
    assert hour not in newest.ids
    assert hour in earlier.ids
    assert back.ids - {""} == newest.ids - {""} or hour not in back.ids
    assert "‹ earlier" not in earlier.links


@pytest.mark.parametrize("ends", [{"orders.v1": {"0": 7}, "users.v1": {"0": 1000}}])
async def test_the_state_of_the_pipeline_is_shown(
    visitor: httpx.AsyncClient, writer: Writer
) -> None:
    tally = Tally(counted=16, late=11, duplicates=12, bad=13)
    writer.commit(purchase(HOUR), watermark=at(30), tally=tally, began_at=0)

    words = await seen(visitor)

    assert "Watermark 2016-11-11 00:30:00 UTC" in words.text
    assert "Records waiting 1,006 orders.v1: 6 users.v1: 1,000" in words.text
    assert "number 0, 0 s ago, took" in words.text
    assert "16 orders" in words.text
    assert "Late orders 11" in words.text
    assert "Duplicates 12" in words.text
    assert "Bad records 13" in words.text
    assert words.links["its trace in Jaeger"] == f"{JAEGER}/trace/{TRACE_ID}"


async def test_without_jaeger_there_is_no_link_to_it(
    resources: Resources, writer: Writer, authenticator: RequestAuthenticator
) -> None:
    writer.commit(purchase(HOUR))
    transport = httpx.ASGITransport(
        create_app(resources, authenticator, page.routes(None, authenticator.rates))
    )
    async with httpx.AsyncClient(transport=transport, base_url="http://analytics") as client:
        assert "Jaeger" not in (await client.get("/")).text


@pytest.mark.parametrize("ends", [None])
async def test_without_kafka_what_waits_is_unknown(
    visitor: httpx.AsyncClient, writer: Writer
) -> None:
    assert "Records waiting unknown Kafka does not respond" in (await seen(visitor)).text


async def test_without_a_job_the_page_shows_since_when_the_numbers_have_not_changed(
    visitor: httpx.AsyncClient, tables: str, tmp_path: Path
) -> None:
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        writer = Writer(connection=connection)
        writer.commit(purchase(HOUR))
        [(committed_at,)] = connection.execute("SELECT committed_at FROM epochs").fetchall()
        assert "job-down" not in (await seen(visitor)).ids

    async with asyncio.timeout(LONG_SECONDS):  # until PostgreSQL has noticed that the job is gone
        while "job-down" not in (words := await seen(visitor)).ids:
            await asyncio.sleep(0.01)

    since = f"{committed_at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"No job is running. The numbers have not changed since {since}." in words.text
    assert "stopped" in words.text


@pytest.mark.parametrize("ends", [{"orders.v1": {"0": 7}}])
async def test_a_job_without_progress_is_noticed_only_while_records_wait(
    visitor: httpx.AsyncClient, writer: Writer, ends: Offsets
) -> None:
    writer.commit(purchase(HOUR))
    long_ago = timedelta(seconds=page.STILL_SECONDS_MAX + 5)
    writer.connection.execute("UPDATE epochs SET committed_at = committed_at - %s", [long_ago])

    assert "job-hangs" in (await seen(visitor)).ids
    ends["orders.v1"]["0"] = 1
    assert "job-hangs" not in (await seen(visitor)).ids


async def test_names_are_shown_as_text_and_not_as_markup(
    visitor: httpx.AsyncClient, writer: Writer
) -> None:
    writer.commit(purchase(HOUR, address="<script>alert(1)</script>"))

    html = (await visitor.get("/")).text

    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


async def test_a_long_split_is_cut_with_a_note(
    visitor: httpx.AsyncClient, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(page.TEMPLATES.globals, "VALUES_SHOWN_MAX", 2)
    writer.commit(*(purchase(HOUR, address=f"place {each}") for each in range(5)))

    words = await seen(visitor)

    assert "place 1" in words.text
    assert "place 2" not in words.text
    assert "3 more are not shown." in words.text


@pytest.mark.parametrize("query", ["?measure=age", "?by=name", "?hour=now", "?until=2016-11-11"])
async def test_a_malformed_choice_is_refused(visitor: httpx.AsyncClient, query: str) -> None:
    assert (await visitor.get(f"/{query}")).status_code == 422
