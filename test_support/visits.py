"""A page in a browser: what it asks for, what it logs, and who could not read it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page

SERIOUS = ("serious", "critical")
"""The impacts, in axe's words, of what makes a page hard or impossible to use for some readers."""

OPTIONS = {"resultTypes": ["violations"], "preload": False}
"""Preloading fetches style sheets again, which pages that have no server may not do."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """A page in a browser, and all that it asked for and complained about."""

    page: Page
    address: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@asynccontextmanager
async def visited(browser: Browser, address: str, **options: Any) -> AsyncIterator[Visit]:
    """Open a new page with these options; at its end, it has asked only its own server, and has
    complained about nothing."""
    page = await browser.new_page(**options)
    visit = Visit(page=page, address=address)
    page.on("request", lambda request: visit.asked.append(request.url))
    page.on("console", lambda message: visit.complaints.append(message.text))
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    try:
        yield visit
    finally:
        await page.close()
    assert [url for url in visit.asked if not url.startswith(f"{address}/")] == []
    assert visit.complaints == []


async def find_barriers(page: Page) -> Sequence[str]:
    """Return the serious findings of axe-core about what a page shows now, with their elements."""
    results = await Axe().run(page, options=OPTIONS)
    return [
        f"{found['help']}: {node['target']}"
        for found in results.response["violations"]
        if found["impact"] in SERIOUS
        for node in found["nodes"]
    ]
