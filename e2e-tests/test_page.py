"""The page of a whole system: the sample's hour, and an order that appears by itself.

The screenshot is in `.run/screenshots`.
"""

import asyncio
from pathlib import Path

from playwright.async_api import Browser, ViewportSize, expect

from test_support.system.clients import Hometown
from test_support.system.sample import Sample
from test_support.visits import find_barriers, visited
from test_support.waits import HANGS_AFTER_SECONDS

COUNTED_MILLISECONDS = 1000 * HANGS_AFTER_SECONDS


async def test_an_order_appears_on_the_page_when_it_is_counted(
    hometown: Hometown, sample: Sample, chromium: Browser, screenshots: Path
) -> None:
    address = hometown.addresses["analytics-api"]
    expect.set_options(timeout=COUNTED_MILLISECONDS)
    async with visited(chromium, address, viewport=ViewportSize(width=1280, height=900)) as visit:
        page = visit.page
        await page.goto(f"{address}/?measure=purchases")
        bar = page.locator(f"#hour-{sample.hour.timestamp():.0f}")
        await expect(bar.locator(".value")).to_have_text("4")
        await page.evaluate("window.isTheSame = true")

        await asyncio.to_thread(buy_again, hometown, sample)

        await expect(bar.locator(".value")).to_have_text("5")
        await bar.locator("a").click()
        rows = page.locator(".split tbody tr")
        await expect(rows.filter(has_text="BJ")).to_contain_text("1 2 4 21,555.52")
        await expect(page.get_by_role("link", name="its trace in Jaeger")).to_be_visible()
        assert await find_barriers(page) == []
        await page.screenshot(path=screenshots / "page-of-the-stack.png", full_page=True)
        assert await page.evaluate("window.isTheSame")


def buy_again(hometown: Hometown, sample: Sample) -> None:
    lines = [(sample.items["iphone"], 1)]
    order = hometown.place_order(sample.users["Jack"], lines, sample.at(31))
    assert hometown.wait_for_decision(order["order_id"])["status"] == "confirmed"
