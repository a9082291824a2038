"""docs/schemas.md in a copy of this checkout: its commands, on a stack that is written and read."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import groupby
from threading import Event

import httpx
import pytest

from local_stack.settings import usual_run_dir
from scripts.changes import CHECKOUT
from test_support.checkout_copy import Copy, copied_checkout
from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.steady_orders import open_account

PAGE = CHECKOUT / "docs" / "schemas.md"
CHANGES_OF_CODE = re.findall(
    r"^(?:git apply|rm|make new|make contracts)\b.*?(?=  #|$)", PAGE.read_text(), re.MULTILINE
)
"""The commands, in the order of the page."""

SINCE = datetime(2016, 11, 11, tzinfo=UTC)
ITEM = {"name": "pen", "type": "pen", "origin": "BJ", "price": "1.00"}
USER = {"name": "Jim", "address": "BJ", "gender": "male", "credit_limit": "0.50"} | {
    "effective_at": "2016-11-11T00:00:00Z"
}
ITEMS, ITEMS_MAX = 20, 200
CHANGES = 3
"""Of the price of each item, before version 2 is there."""
TESTS = (
    *("orders-svc", "users-svc/tests/unit", "contracts/tests"),
    "verification/tests/unit/test_migrations.py",
)

FIRST = {"order_id", "user_id", "reason"}
FORMS = [
    FIRST,
    FIRST | {"amount"},
    {"order_id", "user_id", "code", "amount"},
    {"order_id", "user_id", "code", "amount", "timed_out"},
]
"""Of a rejection, in the event store."""
ORDERS, READS = 3, 20
"""After each command, so that what it has led to is read."""


def list_commands(section: str) -> list[str]:
    """Return the commands of a section of the page, without their comments."""
    _, _, text = PAGE.read_text().partition(f"## {section}\n")
    blocks = re.findall(r"```sh\n(.*?)```", text.partition("\n## ")[0], re.DOTALL)
    return [line.partition("  #")[0] for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    """A copy whose stack runs, in the release before the changes."""
    with copied_checkout() as copy:
        try:
            copy.printed("make", "up")
            yield copy
        finally:
            copy.run("make", "clean")


@contextmanager
def open_clients(copy: Copy, number: int) -> Iterator[list[Hometown]]:
    """Clients of the copy's stack, each for one thread."""
    folder = usual_run_dir("processes", copy.root / ".run")
    with ExitStack() as stack:
        clients = [Hometown.of_run_folder(folder) for _ in range(number)]
        for each in clients:
            stack.enter_context(each.http)
        yield clients


def read_catalogue(hometown: Hometown) -> dict[str, Json]:
    """Return what is listed, by the ids of the items. Raises httpx.HTTPError."""
    return {item["item_id"]: item for item in hometown.list_items(limit=ITEMS_MAX)["items"]}


class Ordering:
    """Places orders beyond the credit of their user: each must be rejected, with the reason."""

    def __init__(self, hometown: Hometown) -> None:
        self._hometown = hometown
        self._user = hometown.register_user(**USER)["user_id"]
        self._item = hometown.list_item(**ITEM)["item_id"]
        self.orders: list[str] = []

    def place(self) -> None:
        """Raises httpx.HTTPError."""
        placed = self._hometown.place_order(self._user, [(self._item, 1)], SINCE)
        demand_rejected(self._wait_for_decision(placed["order_id"]))
        self.orders.append(placed["order_id"])

    def _wait_for_decision(self, order: str) -> Json:
        """Return the order. An API that is replaced answers a request that waits, early."""

        def read() -> Json:
            try:
                return self._hometown.wait_for_decision(order)
            except httpx.HTTPError as error:
                raise AssertionError("a request has failed") from error

        return eventually(read, lambda read: read["status"] != "pending", what="a decision")


def demand_rejected(order: Json) -> None:
    assert (order["status"], order["reason"]) == ("rejected", "insufficient-credit")


def read_form(hometown: Hometown, order: str) -> set[str]:
    """Return the fields of the rejection as it is stored."""
    events = hometown.list_order_events(order)["events"]
    [rejected] = [each for each in events if each["type"] == "order-rejected"]
    return set(rejected["data"])


class Pricing:
    """Changes the price of one item after the other."""

    def __init__(self, hometown: Hometown) -> None:
        self._hometown = hometown
        self.items = [hometown.list_item(**ITEM)["item_id"] for _ in range(ITEMS)]
        self.changes = 0

    def change(self) -> None:
        """Raises httpx.HTTPError."""
        item = self.items[self.changes % ITEMS]
        self._hometown.reprice_item(item, price=f"{self.changes + 2}.00")
        self.changes += 1


class Reading:
    """Reads the catalogue: all items must be there, version 2 with all changes of before."""

    def __init__(self, hometown: Hometown, items: Sequence[str]) -> None:
        self._hometown = hometown
        self._items = items
        self.versions: list[int] = []
        self.wrong: list[Mapping[str, Json]] = []

    def read(self) -> None:
        """Raises httpx.HTTPError."""
        listed = read_catalogue(self._hometown)
        changes = [listed.get(item, {}).get("price_changes") for item in self._items]
        self.versions.append(1 if changes == [None] * ITEMS else 2)
        is_whole = all(each is not None and each >= CHANGES for each in changes)
        if not listed.keys() >= {*self._items} or (self.versions[-1] == 2 and not is_whole):
            self.wrong.append(listed)

    @property
    def switches(self) -> list[int]:
        """Return the versions that were read, one after the other."""
        return [version for version, _ in groupby(self.versions)]


class Busy:
    """Acts that are repeated meanwhile."""

    def __init__(self, threads: ThreadPoolExecutor, acts: Sequence[Callable[[], object]]) -> None:
        self._is_over = Event()
        self._repeated = [threads.submit(self._repeat, act) for act in acts]

    def _repeat(self, act: Callable[[], object]) -> None:
        """Raises AssertionError: an act has failed."""
        try:
            while not self._is_over.is_set():
                act()
        except httpx.HTTPError as error:
            raise AssertionError("a request has failed") from error

    def wait_for(self, done: Sequence[object], more: int) -> None:
        """Return when so much more is done. Raises AssertionError: an act has failed."""
        enough = len(done) + more

        def count() -> int:
            for each in self._repeated:
                if each.done():
                    each.result()
            return len(done)

        eventually(count, lambda counted: counted >= enough, what="what is repeated")

    def end(self) -> None:
        """Raises AssertionError: an act has failed."""
        self._is_over.set()
        for each in self._repeated:
            each.result()


@contextmanager
def kept_busy(*acts: Callable[[], object]) -> Iterator[Busy]:
    with ThreadPoolExecutor(max_workers=len(acts)) as threads:
        busy = Busy(threads, acts)
        try:
            yield busy
        finally:
            busy.end()


@pytest.mark.verify(part="copies")
def test_an_event_gets_other_forms_and_each_stays_readable(copy: Copy) -> None:
    with open_clients(copy, 2) as (buyer, reader):
        ordering = Ordering(buyer)
        ordering.place()

        def read_oldest() -> None:
            demand_rejected(reader.get_order(ordering.orders[0]))

        with kept_busy(ordering.place, read_oldest) as busy:
            for command in list_commands("Change an event: from version 1 to 3"):
                copy.printed("bash", "-c", command)
                busy.wait_for(ordering.orders, ORDERS)
        forms = [read_form(buyer, order) for order in ordering.orders]

    assert [form for form, _ in groupby(forms)] == FORMS
    for service in ("users", "orders"):
        printed = copy.python("-m", "local_stack", "run", service, "parked", "list")
        assert "no stream is parked" in printed
    copy.printed("make", "rebuild-check", "audit")


@pytest.mark.verify(part="copies")
def test_a_read_model_gets_another_version_without_a_failed_read(copy: Copy) -> None:
    copy.git("add", "-A")
    copy.git("commit", "-q", "--allow-empty", "-m", "the release before")
    with open_clients(copy, 3) as (seller, reader, buyer):
        pricing = Pricing(seller)
        for _ in range(CHANGES * ITEMS):
            pricing.change()
        reading = Reading(reader, pricing.items)
        user, item = open_account(buyer, SINCE)

        def order() -> None:
            placed = buyer.place_order(user, [(item, 1)], SINCE)
            buyer.wait_for_decision(placed["order_id"])

        with kept_busy(reading.read, pricing.change, order) as busy:
            for command in list_commands("Change a read model: from version 1 to 2"):
                copy.printed("bash", "-c", command)
                busy.wait_for(reading.versions, READS)
            take_back(copy)
            busy.wait_for(reading.versions, READS)

        assert reading.wrong == []
        assert reading.switches == [1, 2, 1, 2, 1]
        refused = copy.run("make", "switch", "name=orders", "version=2")
        assert "version 2 of catalogue was not served before" in refused.stdout
        copy.printed("make", "rebuild", "name=orders", "version=2")
        eventually(
            lambda: [read_catalogue(reader)[item]["price_changes"] for item in pricing.items],
            lambda changes: sum(changes) == pricing.changes,
            what="all changes of prices",
        )
        copy.printed("make", "rebuild-check")


def take_back(copy: Copy) -> None:
    """Replace the worker by that of the release before, for a while."""
    copy.git("stash", "--include-untracked")
    copy.printed("make", "replace", "name=orders-worker")
    copy.git("stash", "pop")
    copy.printed("make", "replace", "name=orders-worker")


@pytest.mark.verify(part="copies")
def test_what_the_page_changes_is_linted_and_typed_and_keeps_to_the_tests() -> None:
    with copied_checkout() as copy:
        copy.printed("make", "setup")
        for command in CHANGES_OF_CODE:
            copy.printed("bash", "-c", command)
        copy.printed("make", "lint", "imports", "contracts-check")
        copy.python("-m", "mypy", "orders-svc", "users-svc/src")
        copy.python("-m", "pytest", "-q", "-n", "2", *TESTS)
