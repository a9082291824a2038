"""A page in a browser that loads nothing from elsewhere and logs no errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Page


@dataclass(slots=True, kw_only=True)
class Visit:
    """A page in a browser, and all that it asked for and complained about."""

    page: Page
    address: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@asynccontextmanager
async def visited(browser: Browser, address: str, **options: Any) -> AsyncIterator[Visit]:
    """A new page with these options; at its end, it has asked only its own server, and complained
    about nothing."""
    page = await browser.new_page(**options)
    visit = Visit(page=page, address=address)
    page.on("request", lambda request: visit.asked.append(request.url))
    page.on("console", lambda message: visit.complaints.append(message.text))
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    yield visit
    await page.close()
    assert [url for url in visit.asked if not url.startswith(f"{address}/")] == []
    assert visit.complaints == []
