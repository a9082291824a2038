"""The search of the site finds what a newcomer asks for, in pages that are opened from a folder."""

from pathlib import Path
from urllib.parse import urldefrag

from playwright.async_api import Browser, Page, expect

from test_support.visits import visited

WAIT_MILLISECONDS = 30_000

QUESTIONS = {
    "port is taken": "docs/troubleshooting.html",
    "order stays pending": "docs/troubleshooting.html",
    "add a service": "docs/new-service.html",
    "what is an outbox": "docs/glossary.html",
    "exactly once": "docs/guarantees.html",
    "run on Windows": "docs/platforms.html",
    "back up and restore": "docs/backup.html",
    "change an event": "docs/schemas.html",
    "delete personal data": "docs/adr/0023-personal-data-is-crypto-shredded.html",
    "kill a process": "docs/tour.html",
    "rename the project": "docs/your-project.html",
    "is event sourcing the wrong choice": "docs/when-not-to-use.html",
    "why is my order rejected": "docs/troubleshooting.html",
    "Jaeger does not respond": "docs/troubleshooting.html",
    "no space left": "docs/troubleshooting.html",
    "Kafka has lost records": "docs/troubleshooting.html",
    "change the port": "docs/troubleshooting.html",
    "how to get a token": "docs/tour.html",
    "docker compose up": "docs/containers.html",
    "three brokers": "docs/cluster.html",
    "parked stream": "docs/troubleshooting.html",
    "change a read model": "docs/schemas.html",
    "leave out a part": "docs/your-project.html",
    "upgrade my copy": "docs/your-project.html",
    "report a vulnerability": "SECURITY.html",
    "do I need Kafka": "docs/when-not-to-use.html",
    "environment variables": "reference/settings.html",
    "all make commands": "reference/verbs.html",
    "order placed event": "reference/events.html",
    "retention of topics": "reference/topics.html",
    "POST orders": "reference/http-orders-svc.html",
    "architecture diagram": "concepts/system.html",
    "sequence diagram": "concepts/order.html",
    "what happens to an order": "concepts/order.html",
    "module imports": "concepts/modules.html",
    "alternatives": "docs/comparison.html",
    "comparison": "docs/comparison.html",
    "eShop": "docs/comparison.html",
    "Debezium": "docs/comparison.html",
    "Flink": "docs/comparison.html",
    "faster than Kafka Streams": "docs/comparison.html",
    "debug a service": "docs/editors.html",
    "breakpoint": "docs/editors.html",
    "send a request from VS Code": "docs/editors.html",
    "pre-commit": "docs/editors.html",
    "publish a release": "docs/releases.html",
    "prebuilt images": "docs/releases.html",
    "verify the signature of an image": "docs/releases.html",
    "outbox library in Python": "docs/comparison.html",
    "how to contribute": "docs/contributing.html",
    "add a setting": "docs/contributing.html",
    "add a column": "docs/contributing.html",
    "run the tests": "docs/contributing.html",
    "coding assistant": "AGENTS.html",
}
"""What a newcomer types into the search, and the page that answers it."""
RESULTS_READ = 3
"""As many results are read; the page is among them."""


async def test_the_search_finds_what_a_newcomer_asks_for(site: Path, chromium: Browser) -> None:
    folder = site.as_uri()
    missed = {}
    async with visited(chromium, folder) as visit:
        await visit.page.goto(f"{folder}/index.html")
        for question, answer in QUESTIONS.items():
            found = await search(visit.page, question)
            if f"{folder}/{answer}" not in found[:RESULTS_READ]:
                missed[question] = [address.removeprefix(f"{folder}/") for address in found[:5]]

    assert len(QUESTIONS) >= 10
    assert missed == {}, missed


async def search(page: Page, question: str) -> list[str]:
    """Return the pages that the search shows for a question, best first."""
    asked, said = page.locator("input[name=query]"), page.locator(".md-search-result__meta")
    await asked.clear()
    await asked.press("End")  # it listens to keys
    await expect(said).to_have_text("Type to start searching", timeout=WAIT_MILLISECONDS)
    await asked.fill(question)
    await asked.press("End")
    await expect(said).to_contain_text("matching document", timeout=WAIT_MILLISECONDS)
    results = page.locator(".md-search-result__item")
    addresses = await results.evaluate_all("all => all.map(each => each.querySelector('a').href)")
    return [urldefrag(address)[0].partition("?")[0] for address in addresses]
