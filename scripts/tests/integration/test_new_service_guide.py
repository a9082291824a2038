"""The guide to a new service does what it says, in a copy of the checkout: its commands print what
it shows, and its edits lead to a changed event, in the event store and in Jaeger.
"""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local_stack.ports import find_free
from local_stack.settings import usual_run_dir
from scripts.changes import CHECKOUT
from test_support.checkout_copy import Copy, copied_checkout
from test_support.shown import Block, read_blocks
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.traces import Step, edges_of, spans_of

GUIDE = CHECKOUT / "docs" / "new-service.md"
END = "\n## Add a command\n"
"""What follows is run by `test_new.py`."""
PROMISED_SECONDS = 600
"""It is printed next to what was needed. It is no bound, because another machine can be slower."""
READING = ('curl -s localhost:8005/v1/payments -H "Authorization: Bearer $TOKEN"\n', "make trace")
"""A block that begins so changes nothing, and can be a moment early: the guide says so."""
API = "localhost:8005"
REQUEST = Step("payments-api", "POST /v1/payments")
APPENDED = Step("payments-api", "append payment")
SENT = Step("payments-relay", "send payments.v1")
PROCESSED = Step("payments-worker", "process payments.v1")
EDGES = {(REQUEST, APPENDED), (APPENDED, SENT), (SENT, PROCESSED)}
JAEGER_SECONDS_MAX = 900
"""The first time on a machine, Jaeger may have to be built."""


def read_guide() -> Sequence[Block]:
    """Return what the guide lets its readers type, in its order."""
    text, end, _ = GUIDE.read_text().partition(END)
    assert end, "the guide has no such section"
    return read_blocks(text)


@dataclass(slots=True, kw_only=True)
class Reader:
    """One who types what the guide says, in one shell."""

    copy: Copy
    notes: Path
    """A folder for what the shell remembers."""
    port: int = field(default_factory=find_free)
    """Of the API, instead of the usual one."""
    seconds: list[float] = field(default_factory=list)

    @property
    def stack(self) -> Path:
        return usual_run_dir("processes", self.copy.root / ".run")

    def type(self, commands: str) -> str:
        """Return what the commands print; each must succeed. Variables stay for later ones."""
        kept = shlex.quote(str(self.notes / "shell"))
        shell = f"""set -ae -o pipefail
[ ! -e {kept} ] || . {kept}
trap 'export -p > {kept}' EXIT
export HOMETOWN_PORT_PAYMENTS_API={self.port}
"""
        return self.copy.printed(
            "bash", "-c", shell + commands.replace(API, f"localhost:{self.port}")
        )

    def edit(self, diff: str) -> None:
        (self.notes / "edit").write_text(diff)
        self.copy.git("apply", str(self.notes / "edit"))

    def follow(self, block: Block) -> None:
        """Do what a block says. Raises AssertionError: it does not print what is shown."""
        began = time.monotonic()
        if block.kind == "diff":
            self.edit(block.content)
        elif block.content.startswith(READING):
            eventually(lambda: self.find_missing(block), lambda missing: not missing, what="shown")
        else:
            assert self.find_missing(block) == ""
        self.seconds.append(time.monotonic() - began)
        report(block.title, self.seconds[-1])

    def find_missing(self, block: Block) -> str:
        """Type the commands, and return what they print, if not all that is shown is in it."""
        printed = self.type(block.content)
        missing = block.find_missing(printed)
        return f"{printed}\nlacks\n{missing}" if missing else ""


def report(what: str, seconds: float) -> None:
    sys.stdout.write(f"{seconds:7.1f} s  {what}\n")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """What the guide takes for granted was done: there are orders from before."""
    with copied_checkout() as copy:
        try:
            copy.printed("make", "demo")
            yield Reader(copy=copy, notes=tmp_path)
        finally:
            copy.run("make", "clean")


@pytest.mark.verify(part="new")
def test_from_the_command_to_a_changed_event_in_jaeger(reader: Reader) -> None:
    blocks = read_guide()
    for block in blocks[:-1]:
        reader.follow(block)
    hometown = Hometown.of_run_folder(reader.stack)
    eventually(hometown.jaeger_answers, bool, what="Jaeger", seconds_max=JAEGER_SECONDS_MAX)
    reader.follow(blocks[-1])
    report(f"in all; the guide promises {PROMISED_SECONDS} s", sum(reader.seconds))

    traces = [spans_of(each) for each in hometown.traces_of_service("payments-api")]
    edges = {
        span.attributes.get("app.payment.amount"): edges_of(spans)
        for spans in traces
        for span in spans
        if span.step == REQUEST
    }
    assert edges.keys() == {None, "5.00"}, "the first payment has no amount: the negative control"
    assert edges["5.00"] >= EDGES
    demand_committable(reader.copy)


def demand_committable(copy: Copy) -> None:
    """See that what the reader has changed is formatted, linted and typed, and keeps contracts."""
    copy.python("-m", "ruff", "format", "--check", ".")
    copy.python("-m", "ruff", "check", ".")
    copy.python("-m", "mypy", "payments-svc")
    copy.python("-m", "contracts", "check")
    copy.python("-m", "pytest", "-q", "-n", "0", "contracts/tests/unit")
    assert copy.printed("make", "--no-print-directory", "generate") == ""
