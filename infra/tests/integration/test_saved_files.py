"""A saved file restarts the process of a real supervisor, whatever the code is like meanwhile."""

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest

from fetching.errors import Failure
from local_stack import supervision
from local_stack.developing import POLL_MILLISECONDS, develop
from local_stack.readiness import http_probe
from local_stack.replacing import renew
from local_stack.stack_spec import Port, Process, StackContext, StackSpec
from local_stack.testing import throwaway_stack
from test_support.system.eventually import eventually
from test_support.waits import HANGS_AFTER_SECONDS

INTERRUPTED_AFTER_SECONDS = 0.5

DECLARATION = """
name = "notes"
package = "notes_svc"

[processes.worker]
port = 8925
"""
MAIN = """
import json, http.server, os, signal, sys, time
from notes_svc.text import TEXT

READY = json.dumps({"started_at": time.time()}).encode()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(READY if self.path == "/health/ready" else TEXT)

def replace(*_):
    os.execv(sys.executable, [sys.executable, "-B", "-m", "notes_svc"])

if __name__ == "__main__":
    signal.signal(signal.SIGHUP, replace)
    address = ("127.0.0.1", int(os.environ["HTTP_PORT"]))
    http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout with one service, whose worker responds with a text of its code."""

    root: Path
    context: StackContext
    worker: Process
    capsys: pytest.CaptureFixture[str]
    printed: list[str]
    is_replaced_in_place: bool

    def save(self, text: str) -> None:
        (self.root / "notes-svc/src/notes_svc/text.py").write_text(text)

    def read(self) -> bytes | None:
        try:
            return httpx.get(f"http://{self.context.address('notes-worker')}/").content
        except httpx.TransportError:
            return None

    def read_printed(self) -> str:
        """Return all that was printed since `printed` was cleared."""
        self.printed.append(self.capsys.readouterr().out)
        return "".join(self.printed)

    def await_printed(self, words: str) -> None:
        eventually(self.read_printed, lambda printed: words in printed, what=words)

    def await_text(self, text: bytes | None) -> None:
        eventually(self.read, lambda read: read == text, what=f"the text {text!r}")

    def await_restart(self) -> None:
        """Wait until the last restart has ended."""
        done = re.compile("saved (?!.*saved ).*(replaced|ready) after", re.DOTALL)
        eventually(self.read_printed, lambda printed: bool(done.search(printed)), what="a restart")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be another verb at work, as soon as the restart of before has ended."""
        with ExitStack() as stack:
            eventually(lambda: self._is_entered(stack), bool, what="the lock")
            yield

    def _is_entered(self, stack: ExitStack) -> bool:
        try:
            stack.enter_context(self.context.folder.locked())
        except Failure:
            return False
        return True

    @property
    def pid(self) -> int:
        return (supervision.programs(self.context.folder) or {})["notes-worker"].pid


@pytest.fixture(params=[None, "HUP"], ids=["restarted", "replaced in place"])
def checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Iterator[Checkout]:
    root = tmp_path.resolve()
    package = root / "notes-svc/src/notes_svc"
    package.mkdir(parents=True)
    (root / "notes-svc/service.toml").write_text(DECLARATION)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(MAIN)
    (package / "text.py").write_text("TEXT = b'of before'")
    worker = Process(
        name="notes-worker",
        command=lambda context: [sys.executable, "-B", "-m", "notes_svc"],
        environment=lambda context: {
            "PYTHONPATH": os.pathsep.join((str(package.parent), *sys.path)),
            "HTTP_PORT": str(context.ports["notes-worker"]),
        },
        ports=(Port(name="notes-worker", default=8925),),
        probe=http_probe("notes-worker", "/"),
        replaced_on=request.param,
    )
    spec = StackSpec(processes=(worker,))
    stop = threading.Event()
    with throwaway_stack(spec) as context:
        # What is saved during the start is not lost.
        begin = partial((package / "text.py").write_text, "TEXT = b'first'")
        arguments = (spec, context.settings, root, begin, stop)
        watching = threading.Thread(target=develop, args=arguments)
        watching.start()
        here = Checkout(root, context, worker, capsys, [], request.param is not None)
        try:
            here.await_printed("watching notes-svc")
            here.await_text(b"first")
            here.await_restart()
            here.printed.clear()
            yield here
        finally:
            stop.set()
            watching.join(HANGS_AFTER_SECONDS)
        assert not watching.is_alive()
        here.await_printed("no longer watching; `make down` stops the stack")
        assert here.read() is not None


def test_a_save_restarts_and_code_that_does_not_import_is_repaired_by_the_next(
    checkout: Checkout,
) -> None:
    first = checkout.pid
    checkout.save("TEXT = b'second'")
    checkout.await_text(b"second")
    checkout.await_restart()
    assert "saved notes-svc/src/notes_svc/text.py\n" in "".join(checkout.printed)
    second = checkout.pid
    assert (second == first) is checkout.is_replaced_in_place

    checkout.save("TEXT = b'third' +")
    checkout.await_printed("notes_svc does not import")
    assert "SyntaxError: invalid syntax" in "".join(checkout.printed)
    assert (checkout.pid, checkout.read()) == (second, b"second"), "it runs on"

    checkout.save("TEXT = b'third'")
    checkout.await_text(b"third")


def test_code_that_ends_at_its_start_is_shown_and_repaired_by_the_next_save(
    checkout: Checkout,
) -> None:
    main = checkout.root / "notes-svc/src/notes_svc/__main__.py"
    main.write_text(MAIN.replace("address =", "raise SystemExit('no address')\n    address ="))
    checkout.await_printed("notes-worker is not ready after")
    assert "no address" in "".join(checkout.printed)
    assert checkout.read() is None

    checkout.printed.clear()
    main.write_text(MAIN)
    checkout.await_restart()
    assert checkout.read() == b"first"
    assert "saved notes-svc/src/notes_svc/__main__.py" in "".join(checkout.printed)


def test_a_process_that_was_stopped_is_not_started(checkout: Checkout) -> None:
    supervision.stop(checkout.context.folder, "notes-worker")
    checkout.await_text(None)

    checkout.save("TEXT = b'second'")
    (checkout.root / "notes-svc/README.py").write_text("")
    (checkout.root / "notes-svc/service.toml").write_text(DECLARATION)
    checkout.await_printed("notes-svc/service.toml is read at the start")

    assert "saved" not in "".join(checkout.printed)
    assert checkout.read() is None
    supervision.start(checkout.context.folder, "notes-worker")
    checkout.await_text(b"second")


def test_a_save_while_another_verb_is_at_work_is_applied_after_it(checkout: Checkout) -> None:
    before = checkout.pid
    with checkout.locked():
        checkout.save("TEXT = b'second'")
        checkout.await_printed("another command is starting or stopping")
        time.sleep(3 * POLL_MILLISECONDS / 1000)
        assert (checkout.pid, checkout.read()) == (before, b"first")

    checkout.await_text(b"second")
    checkout.await_restart()
    assert "".join(checkout.printed).count("another command") == 1


@pytest.mark.parametrize("checkout", [None], indirect=True, ids=["restarted"])
def test_a_process_is_started_again_if_its_restart_is_interrupted(checkout: Checkout) -> None:
    """As by Ctrl-C, while it is being stopped."""
    slow = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(2), sys.exit()))"
    main = checkout.root / "notes-svc/src/notes_svc/__main__.py"
    main.write_text(MAIN.replace("    address =", f"    {slow}\n    address ="))
    checkout.await_restart()

    async def interrupt() -> None:
        restart = asyncio.create_task(renew(checkout.context, checkout.worker))
        await asyncio.sleep(INTERRUPTED_AFTER_SECONDS)
        assert not restart.done()
        restart.cancel()

    before = checkout.pid
    asyncio.run(interrupt())
    checkout.await_text(b"first")
    assert checkout.pid != before


def test_a_file_that_no_process_runs_restarts_none(checkout: Checkout) -> None:
    (checkout.root / "notes-svc/README.py").write_text("")
    (checkout.root / "notes-svc/service.toml").write_text(DECLARATION)
    checkout.await_printed("notes-svc/service.toml is read at the start")

    checkout.save("TEXT = b'second'")
    checkout.await_restart()

    saved = [line for line in "".join(checkout.printed).splitlines() if line.startswith("saved")]
    assert saved == ["saved notes-svc/src/notes_svc/text.py"]
