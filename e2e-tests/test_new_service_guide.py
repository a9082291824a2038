"""The guide to a new service does what it says, in a fresh copy of the checkout: its commands print
what it shows, and its edits lead to a changed event in the event store, on its topic and in Jaeger.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from local_stack.ports import find_free
from local_stack.run_folder import RunFolder
from local_stack.testing import new_folder
from test_support.checkout_copy import Copy, copied_checkout
from test_support.shown import read_steps, to_pattern
from test_support.system.eventually import eventually
from test_support.system.stack import CHECKOUT
from test_support.system.topology import Step
from test_support.system.traces import Span, edges_of, spans_of

GUIDE = CHECKOUT / "docs" / "new-service.md"
GUIDE_SECONDS_MAX = 600
"""What the guide promises. It is reported, as a busy machine takes longer."""
SHOWN_SECONDS_MAX = 180
READING = ("make lag", "make kafka", "make trace")
"""A block that begins with one of these changes nothing: a reader would repeat it."""
USUAL_API = "localhost:8005"

REQUEST = Step("payments-api", "POST /v1/payments")
APPENDED = Step("payments-api", "append payment")
SENT = Step("payments-relay", "send payments.v1")
PROCESSED = Step("payments-worker", "process payments.v1")
EDGES = {(REQUEST, APPENDED), (APPENDED, SENT), (SENT, PROCESSED)}

READ_EVENTS = """
import asyncio, asyncpg, json, sys
from local_stack.postgres import dsn
from local_stack.settings import Settings
from local_stack.status import as_found

async def read():
    connection = await asyncpg.connect(dsn(as_found(Settings()), "payments"))
    rows = await connection.fetch(
        "SELECT data ->> 'amount' AS amount, metadata ->> 'trace_id' AS trace FROM events"
        " WHERE type = 'payment-added' ORDER BY recorded_at"
    )
    await connection.close()
    print(json.dumps([dict(row) for row in rows]))

asyncio.run(read())
"""


@dataclass(slots=True, kw_only=True)
class Reader:
    """Someone who types what the guide says, in one shell; `seconds` is the stopwatch."""

    copy: Copy
    folder: Path
    """Of the stack."""
    notes: Path
    port: int
    """Of the API, instead of the usual one."""
    seconds: list[float] = field(default_factory=list)

    @property
    def variables(self) -> Mapping[str, str]:
        return {
            "HOMETOWN_RUN_DIR": str(self.folder),
            "HOMETOWN_PORT_PAYMENTS_API": str(self.port),
        }

    def type(self, commands: str) -> str:
        """What they print. Variables stay as they would in one shell."""
        kept = self.notes / "shell"
        wrapped = (
            f"set -ae; [ ! -e {kept} ] || . {kept}; trap 'export -p > {kept}' EXIT\n"
            f"{commands.replace(USUAL_API, f'localhost:{self.port}')}"
        )
        return self.copy.printed("bash", "-c", wrapped, **self.variables)

    def apply(self, edit: str) -> None:
        (self.notes / "edit").write_text(edit)
        self.copy.git("apply", str(self.notes / "edit"))

    @contextmanager
    def timed(self, title: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds.append(time.monotonic() - began)
        report(title, self.seconds[-1])


def report(what: str, seconds: float) -> None:
    sys.stdout.write(f"{seconds:7.1f} s  {what}\n")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    folder = new_folder()
    with copied_checkout() as copy:
        reader = Reader(copy=copy, folder=folder, notes=tmp_path, port=find_free())
        # What everyone has done before, and is not a part of the guide.
        copy.printed("make", "setup")
        try:
            yield reader
        finally:
            copy.run("make", "clean", **reader.variables)
            RunFolder(folder).remove()


def check(reader: Reader, commands: str, shown: str) -> None:
    """Type the commands, and find each line that is shown."""

    def find_missing() -> tuple[list[str], str]:
        printed = reader.type(commands)
        lines = [to_pattern(line) for line in shown.splitlines()]
        return [each for each in lines if not re.search(each, printed, re.MULTILINE)], printed

    if commands.startswith(READING):
        eventually(
            find_missing, lambda found: not found[0], what="shown", seconds_max=SHOWN_SECONDS_MAX
        )
    else:
        missing, printed = find_missing()
        assert not missing, printed


@pytest.mark.long
def test_from_the_command_to_a_changed_event_in_jaeger(reader: Reader) -> None:
    for step in read_steps(GUIDE):
        with reader.timed(step.title):
            if step.kind == "diff":
                reader.apply(step.content)
            else:
                check(reader, step.content, step.shown)

    report(f"in all; the guide promises {GUIDE_SECONDS_MAX} s", sum(reader.seconds))
    first, second = json.loads(
        reader.copy.printed(".venv/bin/python", "-c", READ_EVENTS, **reader.variables)
    )
    assert (first["amount"], second["amount"]) == (None, "5.00")
    assert edges_of(find_spans(reader, second["trace"])) >= EDGES
    assert "5.00" in attributes_of(find_spans(reader, second["trace"]))
    assert "5.00" not in attributes_of(find_spans(reader, first["trace"])), "the negative control"
    check_committable(reader.copy)


def check_committable(copy: Copy) -> None:
    """What `make check` would find, without the tests of other services."""
    copy.python("-m", "ruff", "format", "--check", ".")
    copy.python("-m", "ruff", "check", ".")
    copy.python("-m", "mypy", "payments-svc")
    copy.python("-m", "contracts", "check")
    assert copy.printed("make", "--no-print-directory", "generate") == ""


def find_spans(reader: Reader, trace_id: str) -> list[Span]:
    """As Jaeger's API has them."""
    addresses = json.loads(RunFolder(reader.folder).addresses.read_text())
    answer = httpx.get(f"{addresses['jaeger']}/api/traces/{trace_id}").raise_for_status()
    [trace] = answer.json()["data"]
    return spans_of(trace)


def attributes_of(spans: list[Span]) -> set[str]:
    return {each.attributes.get("app.payment.amount", "") for each in spans if each.step == REQUEST}
