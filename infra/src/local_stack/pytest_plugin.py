"""Fixtures: a real PostgreSQL, a real Kafka and a real browser for the tests of every package.

With several workers (`-n 2`), each has servers of its own. Tests that share something larger, a
whole stack or a Spark, stay with one worker.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from fetching import browser
from fetching.errors import Failure
from local_stack import issuer
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.testing import Databases, read_last_lines, throwaway_kafka, throwaway_postgres
from shared.messaging import topics
from shared.runtime import telemetry
from shared.runtime.brokers import Brokers
from shared.runtime.settings import DEVELOPMENT_ISSUER
from shared.web.auth import RequestAuthenticator, Verifier
from shared.web.limits import Rates
from shared.web.signing_keys import SigningKeys

if TYPE_CHECKING:
    from playwright.async_api import Browser

BROWSER_ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
"""A browser that makes no requests but those of a test."""

SHARED_BY = ("analytics-spark/tests/integration", "e2e-tests")
"""Folders whose tests share what is too large to have twice."""
LONGEST = (
    *SHARED_BY,
    "shared/tests/integration/test_worker.py",
    "analytics-faust/tests/integration/test_worker.py",
    "shared/tests/integration/test_relay.py",
)
"""What one worker runs, those first that take longest, so that all workers end together. A run
ends with the times."""
GROUPS_SHOWN = 12
WORKERS_MAX = 6
"""Each has servers of its own, in a gigabyte of memory."""

os.environ.setdefault("HOMETOWN_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
os.environ["JDK_JAVA_OPTIONS"] = os.environ["HOMETOWN_JAVA_OPTIONS"]
# Java compiles for a short life: a test's Spark is gone before optimized code has paid for itself.
# The stack in containers runs with the options of the product.
os.environ.setdefault("NICENESS", "0")
# A job that yields to the stacks of all tests on the machine would get nothing.

hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
# No test fails because the machine was busy.

REQUESTS_PER_SECOND_MAX = 1_000_000
"""More than a test can ask for."""


def shared_by(test: str) -> str:
    """What a test's file shares its servers with: its folder, or only itself."""
    path = test.partition("::")[0]
    folder = path.rpartition("/")[0]
    return folder if folder in SHARED_BY else path


def rank(test: str) -> int:
    """The place of a test in the order of a run: unit tests take least."""
    group = shared_by(test)
    return LONGEST.index(group) if group in LONGEST else len(LONGEST) + ("/unit/" in group)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure what the processes of the test have logged last: a wait that ran out does
    not show what the other process did.
    """
    report = yield
    if report.failed:
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        logs = read_last_lines(sorted(folder.glob("*.log")) if folder else [])
        report.sections += [(f"Last lines of {name}", lines) for name, lines in logs.items()]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long each group took, where several workers shared them."""
    if not terminalreporter.config.getoption("numprocesses", None):
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[shared_by(report.nodeid)] += report.duration
    terminalreporter.section(f"{GROUPS_SHOWN} longest of {len(seconds)} groups")
    for group in sorted(seconds, key=seconds.__getitem__, reverse=True)[:GROUPS_SHOWN]:
        terminalreporter.write_line(f"{seconds[group]:7.1f}s  {group}")


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]
    """Gives all tests that share something to one worker.

    `--dist loadgroup` would do it by marks, but not with pytest 9.2 (and pytest-xdist 3.8).
    """

    def _split_scope(self, nodeid: str) -> str:
        return shared_by(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduler:
    return Scheduler(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Choose the number of workers for `-n auto`: one works while another waits for a server."""
    return min((os.cpu_count() or 1) + 1, WORKERS_MAX)


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The superuser's DSN of a server for this run."""
    with throwaway_postgres() as dsns:
        yield dsns["postgres"]


@pytest.fixture(scope="session")
def databases(postgres_dsn: str) -> Databases:
    return Databases(postgres_dsn)


@pytest.fixture
def empty_database(databases: Databases) -> Iterator[str]:
    """The DSN of an empty database of this test alone."""
    with databases.create() as dsn:
        yield dsn


@pytest.fixture
def database(empty_database: str) -> str:
    """The database of a test. A package's conftest overrides it with one that has its tables."""
    return empty_database


@pytest.fixture(scope="session")
def kafka_servers() -> Iterator[str]:
    """The bootstrap servers of a broker for this run, with all topics."""
    with throwaway_kafka() as servers:
        asyncio.run(topics.create(Brokers(servers)))
        yield servers


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What a process that records every trace would export."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(id_generator=telemetry.SpanIds())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", provider.get_tracer("test"))
    return exporter


@pytest.fixture(scope="session")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The folder of an issuer for this run; see `local_stack.testing.bearer`."""
    folder = RunFolder(tmp_path_factory.mktemp("issuer"))
    issuer.establish(folder)
    return folder


@pytest.fixture
def authenticator(issuing: RunFolder) -> RequestAuthenticator:
    """Lets in whom that issuer knows, as often as they like."""
    keys = SigningKeys(issuer.public_keys(issuing).as_uri())
    verifier = Verifier(keys, issuer=DEVELOPMENT_ISSUER, audience=issuer.AUDIENCE)
    return RequestAuthenticator(verifier=verifier, rates=Rates(REQUESTS_PER_SECOND_MAX))


@pytest.fixture
async def chromium() -> AsyncIterator["Browser"]:
    """A headless browser. Without one, the test fails and names the remedy."""
    from playwright.async_api import async_playwright  # half a second that most runs can spare

    async with async_playwright() as playwright:
        found = found_browser(Path(playwright.chromium.executable_path))
        launched = await playwright.chromium.launch(
            executable_path=found.program,
            args=BROWSER_ARGUMENTS,
            env={**os.environ, **found.variables},
        )
        try:
            yield launched
        finally:
            await launched.close()


def found_browser(of_playwright: Path) -> browser.Browser:
    """Any of those that can be there. Raises Failure."""
    try:
        return browser.obtain(Settings(), lambda line: None)
    except Failure:
        if of_playwright.exists():
            return browser.Browser(program=of_playwright)
        raise


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """The folder for pictures that people look at after the tests."""
    folder = Settings().run_dir / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
