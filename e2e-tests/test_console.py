"""The console of a whole system in a browser: the road, an order followed, a relay killed and back.

The screenshots are in `.run/screenshots`.
"""

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Route, ViewportSize, expect

from shared.runtime.declarations import load_declarations
from test_support.system.clients import Hometown
from test_support.system.stack import Stack
from test_support.visits import Visit, visited

WAIT_MILLISECONDS = 300_000
WIDE = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=360, height=740)
PROCESSES = [each.name for each in load_declarations().processes if each.profile is None]
TOKEN = re.compile(r'name="token" value="([^"]+)"')
WELL = re.compile("^All is up")
LINE_OF_A_LOG = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \[\w+ *\] ")

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("HOMETOWN_TEST_IN") == "cluster", reason="a cluster has no console"
    ),
    pytest.mark.usefixtures("nothing_parked"),
]
only_processes = pytest.mark.skipif(
    os.environ.get("HOMETOWN_TEST_IN", "processes") != "processes",
    reason="in containers the page shows commands instead of buttons",
)


@pytest.fixture
def address(hometown: Hometown) -> str:
    return hometown.addresses["console"]


@pytest.fixture
async def visit(chromium: Browser, address: str) -> AsyncIterator[Visit]:
    """In every test, the page loads no third-party resources, and logs no errors."""
    expect.set_options(timeout=WAIT_MILLISECONDS)
    async with visited(
        chromium, address, viewport=WIDE, reduced_motion="reduce", ignore_https_errors=True
    ) as visit:
        visit.page.set_default_timeout(WAIT_MILLISECONDS)
        yield visit


@pytest.fixture
def token(client: httpx.Client, address: str) -> str:
    """That of the forms of the page."""
    found = TOKEN.search(client.get(address).text)
    assert found
    return found[1]


@pytest.fixture
def client(hometown: Hometown) -> Iterator[httpx.Client]:
    with httpx.Client(verify=hometown.verify, trust_env=False) as client:
        yield client


async def test_the_first_page_shows_each_process_and_each_hop(
    visit: Visit, screenshots: Path
) -> None:
    page = visit.page
    await page.goto(visit.address)

    for name in PROCESSES:
        await expect(page.locator(f"#process-{name} .state")).to_have_text("up")
    await expect(page.locator("#verdict")).to_have_text(WELL)
    await expect(page.locator('.road.wide [data-node="users-worker"] .word')).to_have_text("OK")
    await expect(page.locator('.road.wide [data-node="orders.v1"] .word')).to_have_text("up")
    await expect(page.locator('.road.wide [data-node="users-worker"]')).to_contain_text("lag 0")
    await page.screenshot(path=screenshots / "console-quiet.png", full_page=True)


async def test_an_order_is_followed_from_its_placement_to_its_cell(
    visit: Visit, stack: Stack, screenshots: Path
) -> None:
    stack.demand_jaeger()
    page = visit.page
    await page.goto(visit.address)
    await page.get_by_role("button", name="Place an order").click()

    await expect(page.locator("#status")).to_have_text("confirmed")
    await expect(page.locator(".journey li").last).to_contain_text("counted by Spark")
    await expect(page.locator(".journey")).to_contain_text("where the buyer lives")
    spans = page.locator(".waterfall .span")
    await expect(spans.filter(has_text="merge cell")).to_be_visible()
    await expect(spans.first).to_have_text("POST /v1/orders")
    await page.screenshot(path=screenshots / "console-order.png", full_page=True)

    order_id = page.url.rpartition("/")[2]
    await page.goto(visit.address)
    await page.get_by_label("Id of an order or a trace").fill(order_id)
    await page.get_by_role("button", name="Follow", exact=True).click()
    await expect(page.locator("#status")).to_have_text("confirmed")


@only_processes
async def test_a_relay_that_is_killed_under_load_is_shown_until_it_has_healed(
    visit: Visit, stack: Stack, screenshots: Path
) -> None:
    page = visit.page
    before = stack.lives()["orders-relay"]
    await page.goto(visit.address)
    await expect(page.locator("#verdict")).to_have_text(WELL)
    await page.get_by_role("button", name="Load").click()
    load = page.locator(".actions li", has_text="load:")
    await expect(load).to_contain_text(re.compile(r"\d{3} orders placed"))

    relay = page.locator('.road.wide [data-node="orders-relay"]')
    await page.get_by_role("button", name="Kill orders-relay").click()
    await expect(relay).to_have_class(re.compile("down|not-ready"))
    await expect(page.locator("#verdict")).to_contain_text("orders-relay")
    await page.screenshot(path=screenshots / "console-killed.png", full_page=True)

    actions = page.locator(".actions li")
    await expect(actions.filter(has_text="orders-relay killed")).to_contain_text("back after")
    await expect(relay).to_have_class(re.compile("up"))
    await expect(load).to_have_class("done")
    await expect(load).not_to_contain_text("failed")
    await expect(page.locator("#verdict")).to_have_text("All is up, and nothing waits.")
    await page.screenshot(path=screenshots / "console-healed.png", full_page=True)
    assert stack.lives()["orders-relay"] != before


@only_processes
async def test_a_broker_that_is_stopped_comes_back(visit: Visit, stack: Stack) -> None:
    page = visit.page
    before = stack.lives()["kafka"]
    await page.goto(visit.address)
    await page.get_by_role("button", name="Stop the broker").click()

    await expect(page.locator("#process-kafka .state")).to_have_text("down")
    stopped = page.locator(".actions li", has_text="broker stopped")
    await expect(stopped).to_contain_text("back, ")
    await expect(page.locator("#process-kafka .state")).to_have_text("up")
    await expect(page.locator('.road.wide [data-node="orders.v1"]')).to_have_class(re.compile("up"))
    await expect(page.locator("#verdict")).to_have_text(WELL)
    assert stack.lives()["kafka"] != before


@only_processes
async def test_a_process_has_its_charts_and_its_log(visit: Visit) -> None:
    page = visit.page
    await page.goto(f"{visit.address}/processes/users-api")

    await expect(page.locator(".large figure").filter(has_text="memory")).to_be_visible()
    # The last lines only: what they say depends on what other tests have just done.
    await expect(page.locator(".log")).to_contain_text(LINE_OF_A_LOG)


@pytest.mark.parametrize("path", ["/", "/processes/analytics-job"])
async def test_on_a_phone_in_the_dark_nothing_scrolls_sideways(
    visit: Visit, screenshots: Path, path: str
) -> None:
    page = visit.page
    await page.set_viewport_size(PHONE)
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await page.goto(visit.address + path)
    await expect(page.locator(".state").first).to_be_visible()

    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    name = "console-phone.png" if path == "/" else "console-phone-process.png"
    await page.screenshot(path=screenshots / name, full_page=True)


@pytest.mark.parametrize("path", ["/orders", "/actions/load", "/actions/kill"])
def test_a_request_of_another_site_does_nothing(
    client: httpx.Client, stack: Stack, address: str, token: str, path: str
) -> None:
    """The token of a form is of no use to it; the same form from the page acts: see above."""
    before = stack.lives()
    form = {"token": token, "process": "users-relay"}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {},
    ):
        assert client.post(address + path, data=form, headers=headers).status_code == 403
    own = {"Origin": address, "Sec-Fetch-Site": "same-origin"}
    assert client.post(address + path, data={"process": "users-relay"}, headers=own).is_error
    assert client.get(address, headers={"Host": "evil.example"}).status_code == 403
    assert stack.lives() == before


async def test_the_form_of_another_site_does_nothing_in_a_browser(
    chromium: Browser, address: str, token: str
) -> None:
    """The page of another site on this machine, with the right token, sends a form."""
    html = (
        f'<form method="post" action="{address}/actions/load">'
        f'<input name="token" value="{token}"><button>win</button></form>'
    )

    async def show(route: Route) -> None:
        await route.fulfill(body=html, content_type="text/html")

    page = await chromium.new_page(ignore_https_errors=True)
    await page.route("http://127.0.0.1:1/", show)
    await page.goto("http://127.0.0.1:1/")
    async with page.expect_navigation() as navigation:
        await page.get_by_role("button", name="win").click()
    response = await navigation.value
    assert response is not None
    assert (response.status, await response.text()) == (
        403,
        "refused: the request comes from another site\n",
    )
    await page.close()
