"""The page in a real browser: a click splits, a batch appears by itself, and nothing else is asked.

The pictures lie in `.run/screenshots`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Route, ViewportSize, expect

from analytics_spark.job.batch import Tally
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.job.writer import open_writer
from analytics_spark.serving import page as page_module
from analytics_spark.serving import stream
from analytics_spark.serving.api import create_app
from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import open_feed
from shared.runtime import postgres
from shared.web.auth import RequestAuthenticator
from test_support.analytics.histories import HOUR, at
from test_support.analytics.served import BUCKETS, KnownEnds, Writer, purchase, served
from test_support.visits import Visit, find_barriers, visited
from test_support.waits import HANGS_AFTER_SECONDS

WAIT_MILLISECONDS = 1000 * HANGS_AFTER_SECONDS
NEVER_SECONDS = 3600
SHORT_SECONDS = 0.3
WIDE = ViewportSize(width=1280, height=900)
NARROW = ViewportSize(width=400, height=800)

SAMPLE = (
    purchase(HOUR, "Jack"),
    purchase(HOUR, "Lily", address="SH", item_type="pad", gender="female", cents=14_666_64),
    purchase(HOUR, "Tom", address="SZ", item_type="watch", cents=8_006_64),
    purchase(HOUR, "Lucy", address="GZ", item_type="pod", gender="female", cents=5_666_64),
)
"""What is local in the sample."""


@pytest.fixture
def writer(tables: str, tmp_path: Path) -> Iterator[Writer]:
    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        yield Writer(connection=connection)


@pytest.fixture
def stream_seconds_max() -> float:
    return NEVER_SECONDS


@pytest.fixture
async def address(
    tables: str,
    authenticator: RequestAuthenticator,
    monkeypatch: pytest.MonkeyPatch,
    stream_seconds_max: float,
) -> AsyncIterator[str]:
    monkeypatch.setattr(stream, "POLL_SECONDS", 0.05)
    monkeypatch.setitem(page_module.TEMPLATES.globals, "REFRESH_SECONDS", NEVER_SECONDS)
    async with (
        postgres.open_pool(tables, name="test", connections_max=4) as pool,
        open_feed(pool, seconds_max=stream_seconds_max) as feed,
    ):
        ends = KnownEnds({"orders.v1": {"0": 4}})
        resources = Resources(pool=pool, topic_ends=ends, feed=feed)
        async with served(
            create_app(resources, authenticator, page_module.routes(None, authenticator.rates))
        ) as address:
            yield address


@pytest.fixture
async def visit(chromium: Browser, address: str) -> AsyncIterator[Visit]:
    """In every test, the page loads no third-party resources, and logs no errors."""
    async with visited(chromium, address, viewport=WIDE, reduced_motion="reduce") as visit:
        visit.page.set_default_timeout(WAIT_MILLISECONDS)
        expect.set_options(timeout=WAIT_MILLISECONDS)
        yield visit


async def commit(writer: Writer, *deltas: dict[str, object], watermark: float) -> None:
    tally = Tally(counted=len(deltas))
    await asyncio.to_thread(writer.commit, *deltas, watermark=at(watermark), tally=tally)


def bar(visit: Visit, hours_later: int) -> str:
    return f"#hour-{(HOUR + timedelta(hours=hours_later)).timestamp():.0f}"


async def test_the_sample_shows_four_local_buyers_and_a_click_splits_them(
    visit: Visit, writer: Writer, screenshots: Path
) -> None:
    await commit(writer, *SAMPLE, watermark=-90)
    page = visit.page
    await page.goto(visit.address)

    await expect(page.locator(f"{bar(visit, 0)} .value")).to_have_text("4")
    rows = page.locator(".split tbody tr")
    await expect(rows).to_have_text([rf"{place} 1 1 3 {amount}" for place, amount in BY_ORIGIN])
    await page.screenshot(path=screenshots / "page-sample.png", full_page=True)
    await page.get_by_role("link", name="gender", exact=True).click()
    await expect(rows).to_have_text(["female 2 2 6 20,333.28", "male 2 2 6 24,173.28"])
    await page.get_by_role("link", name="amount", exact=True).click()
    await expect(rows).to_have_text(["male 2 2 6 24,173.28", "female 2 2 6 20,333.28"])
    await expect(page.locator(f"{bar(visit, 0)} .value")).to_have_text("44,506.56")
    assert "by=gender" in page.url
    await page.go_back()
    await expect(page.locator(f"{bar(visit, 0)} .value")).to_have_text("4")


BY_ORIGIN = [("BJ", "16,166.64"), ("GZ", "5,666.64"), ("SH", "14,666.64"), ("SZ", "8,006.64")]


async def test_a_batch_appears_without_a_reload_in_the_chosen_view(
    visit: Visit, writer: Writer
) -> None:
    await commit(writer, *SAMPLE, watermark=-90)
    page = visit.page
    await page.goto(f"{visit.address}/?by=gender")
    await page.evaluate("window.isTheSame = true")

    await commit(writer, purchase(HOUR, "Tim"), watermark=-90)
    await expect(page.locator(f"{bar(visit, 0)} .value")).to_have_text("5")
    await commit(writer, purchase(HOUR + timedelta(hours=1), "Tim"), watermark=-30)
    await expect(page.locator(f"{bar(visit, 1)} .value")).to_have_text("1")

    await expect(page.locator("#split-title")).to_contain_text("by gender")
    assert await page.evaluate("window.isTheSame")
    assert [url for url in visit.asked if url.endswith("/?by=gender")] == visit.asked[:1]


async def test_a_page_listens_though_a_script_comes_late(visit: Visit, writer: Writer) -> None:
    async def delay(route: Route) -> None:
        await asyncio.sleep(SHORT_SECONDS)
        await route.continue_()

    await visit.page.route("**/hx-sse.min.js", delay)
    await commit(writer, *SAMPLE, watermark=-90)
    await visit.page.goto(visit.address)

    await commit(writer, purchase(HOUR, "Tim"), watermark=-90)
    await expect(visit.page.locator(f"{bar(visit, 0)} .value")).to_have_text("5")


@pytest.mark.parametrize("stream_seconds_max", [SHORT_SECONDS])
async def test_a_stream_that_ends_is_reconnected(visit: Visit, writer: Writer) -> None:
    await commit(writer, *SAMPLE, watermark=-90)
    await visit.page.goto(visit.address)

    def streams() -> int:
        return len([url for url in visit.asked if url.endswith("/page/changes")])

    for buyers in (5, 6):
        before = streams()
        async with asyncio.timeout(WAIT_MILLISECONDS / 1000):
            while streams() <= before + 1:  # the one that listened before has ended
                await asyncio.sleep(SHORT_SECONDS)
        await commit(writer, purchase(HOUR, f"buyer {buyers}"), watermark=-90)
        await expect(visit.page.locator(f"{bar(visit, 0)} .value")).to_have_text(str(buyers))


async def test_without_the_stream_a_batch_appears_only_at_the_next_refresh(
    visit: Visit, writer: Writer
) -> None:
    """The negative control of the test above."""
    await visit.page.route("**/page/changes", lambda route: route.abort())
    await commit(writer, *SAMPLE, watermark=-90)
    await visit.page.goto(visit.address)
    await expect(visit.page.locator(f"{bar(visit, 0)} .value")).to_have_text("4")

    await commit(writer, purchase(HOUR, "Tim"), watermark=-90)
    await asyncio.sleep(2)

    await expect(visit.page.locator(f"{bar(visit, 0)} .value")).to_have_text("4")
    visit.complaints.clear()  # that it could not connect


async def test_final_and_provisional_differ_in_words_and_in_looks(
    visit: Visit, writer: Writer, screenshots: Path
) -> None:
    for number in range(20):
        buyers = 3 + number * 7 % 11
        deltas = [purchase(HOUR + timedelta(hours=number), f"{each}") for each in range(buyers)]
        await commit(writer, *deltas, watermark=60 * number - 150)
    page = visit.page
    await page.goto(visit.address)

    looks = {}
    for hours_later, state in ((0, "final"), (19, "provisional")):
        link = page.locator(f"{bar(visit, hours_later)} a")
        assert (await link.get_attribute("title") or "").endswith(state)
        looks[state] = await link.locator(".bar").evaluate(
            "bar => getComputedStyle(bar).backgroundImage"
        )
    assert looks["final"] == "none"
    assert looks["provisional"].startswith("repeating-linear-gradient")
    await expect(page.locator(".legend")).to_contain_text("provisional: later orders")
    await page.locator(f"{bar(visit, 0)} a").click()
    await expect(page.locator("#split-title")).to_contain_text("final")
    await page.screenshot(path=screenshots / "page-hours.png", full_page=True)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_nothing_is_wider_than_the_window(
    visit: Visit, writer: Writer, screenshots: Path, size: ViewportSize
) -> None:
    for number in range(24):
        await commit(writer, *SAMPLE, watermark=-90)
        delta = purchase(HOUR + timedelta(hours=number), cents=123_456_78)
        await commit(writer, delta, watermark=-90)
    page = visit.page
    await page.set_viewport_size(size)
    for by in ("origin", "item"):
        await page.goto(f"{visit.address}/?measure=amount&by={by}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    await page.screenshot(path=screenshots / f"page-{size['width']}.png", full_page=True)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_all_can_read_the_page(
    visit: Visit, writer: Writer, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    """Axe-core finds nothing serious, with hours and without."""
    page = visit.page
    await page.set_viewport_size(size)
    await page.emulate_media(color_scheme=scheme)
    await page.goto(visit.address)
    empty = await find_barriers(page)
    await commit(writer, *SAMPLE, watermark=-90)
    await page.goto(f"{visit.address}/?by=gender")

    assert empty == []
    assert await find_barriers(page) == []


async def test_the_page_shows_that_no_job_runs_until_one_does(
    visit: Visit, tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screenshots: Path
) -> None:
    monkeypatch.setitem(page_module.TEMPLATES.globals, "REFRESH_SECONDS", 1)
    await visit.page.goto(visit.address)
    await expect(visit.page.locator("#job-down")).to_be_visible()
    await expect(visit.page.locator("#empty")).to_contain_text("make demo")
    await visit.page.screenshot(path=screenshots / "page-empty.png", full_page=True)

    with open_writer(tables, Checkpoint(tmp_path), BUCKETS) as connection:
        writer = Writer(connection=connection)
        await commit(writer, *SAMPLE, watermark=-90)
        await expect(visit.page.locator("#job-down")).to_have_count(0)
        await expect(visit.page.locator(f"{bar(visit, 0)} .value")).to_have_text("4")
    await expect(visit.page.locator("#job-down")).to_contain_text("have not changed since")


@pytest.mark.parametrize("status", [429, 500, 504])
async def test_a_refresh_that_fails_keeps_the_numbers_and_is_retried(
    visit: Visit, writer: Writer, status: int
) -> None:
    await commit(writer, *SAMPLE, watermark=-90)
    page = visit.page
    await page.goto(visit.address)
    four = page.locator(f"{bar(visit, 0)} .value")
    await expect(four).to_have_text("4")

    refused = asyncio.Event()

    async def refuse(route: Route) -> None:
        await route.fulfill(status=status, content_type="application/problem+json", body="{}")
        refused.set()

    await page.route("**/?*", refuse)
    await commit(writer, purchase(HOUR, "Tim"), watermark=-90)
    async with asyncio.timeout(WAIT_MILLISECONDS / 1000):
        await refused.wait()
    await asyncio.sleep(SHORT_SECONDS)
    await expect(four).to_have_text("4")
    await page.unroute("**/?*")
    await commit(writer, purchase(HOUR, "Tina"), watermark=-90)
    await expect(four).to_have_text("6")
    assert all(str(status) in each for each in visit.complaints)  # the browser's own line
    visit.complaints.clear()


END_OF_PATIENCE = "document.querySelector('.stale').getAnimations().forEach(each => each.finish())"


async def test_a_page_that_is_not_refreshed_shows_it_until_it_is(
    visit: Visit, writer: Writer
) -> None:
    await commit(writer, *SAMPLE, watermark=-90)
    page = visit.page
    await page.goto(visit.address)
    stale = page.locator(".stale")
    await expect(stale).to_be_hidden()

    await page.evaluate(END_OF_PATIENCE)
    await expect(stale).to_be_visible()
    await expect(stale).to_contain_text("has not been refreshed")

    await commit(writer, purchase(HOUR, "Tim"), watermark=-90)
    await expect(page.locator(f"{bar(visit, 0)} .value")).to_have_text("5")
    await expect(stale).to_be_hidden()
