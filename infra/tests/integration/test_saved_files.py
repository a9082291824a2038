"""A saved file restarts the process of a real supervisor, whatever the code is like meanwhile."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from local_stack import supervision
from local_stack.developing import develop
from local_stack.readiness import http_probe
from local_stack.stack_spec import Port, Process, StackContext, StackSpec
from local_stack.testing import throwaway_stack

SECONDS_MAX = 60
POLL_SECONDS = 0.1

DECLARATION = """
name = "notes"
package = "notes_svc"

[processes.worker]
port = 8925
"""
MAIN = """
import os, http.server
from notes_svc.text import TEXT

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(TEXT)

if __name__ == "__main__":
    address = ("127.0.0.1", int(os.environ["HTTP_PORT"]))
    http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout with one service, whose worker responds with a text of its code."""

    root: Path
    context: StackContext
    capsys: pytest.CaptureFixture[str]
    printed: list[str]

    def save(self, text: str) -> None:
        (self.root / "notes-svc/src/notes_svc/text.py").write_text(text)

    def read(self) -> bytes | None:
        try:
            return httpx.get(f"http://{self.context.address('notes-worker')}/").content
        except httpx.TransportError:
            return None

    def has_printed(self, words: str) -> bool:
        self.printed.append(self.capsys.readouterr().out)
        return words in "".join(self.printed)

    @property
    def pid(self) -> int:
        return (supervision.programs(self.context.folder) or {})["notes-worker"].pid


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)


@pytest.fixture
def checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Checkout]:
    root = tmp_path.resolve()
    package = root / "notes-svc/src/notes_svc"
    package.mkdir(parents=True)
    (root / "notes-svc/service.toml").write_text(DECLARATION)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(MAIN)
    (package / "text.py").write_text("TEXT = b'first'")
    worker = Process(
        name="notes-worker",
        command=lambda context: [sys.executable, "-B", "-m", "notes_svc"],
        environment=lambda context: {
            "PYTHONPATH": os.pathsep.join((str(package.parent), *sys.path)),
            "HTTP_PORT": str(context.ports["notes-worker"]),
        },
        ports=(Port(name="notes-worker", default=8925),),
        probe=http_probe("notes-worker", "/"),
    )
    spec = StackSpec(processes=(worker,))
    stop = threading.Event()
    with throwaway_stack(spec) as context:
        watching = threading.Thread(target=develop, args=(spec, context.settings, root, stop))
        watching.start()
        here = Checkout(root, context, capsys, [])
        try:
            eventually(lambda: here.has_printed("watching notes-svc"))
            yield here
        finally:
            stop.set()
            watching.join()
        eventually(lambda: here.has_printed("no longer watching; the stack still runs"))
        assert here.read() is not None


def test_a_save_restarts_and_code_that_does_not_import_is_repaired_by_the_next(
    checkout: Checkout,
) -> None:
    first = checkout.pid
    checkout.save("TEXT = b'second'")
    eventually(lambda: checkout.read() == b"second")
    eventually(lambda: checkout.has_printed("s: notes-svc/src/notes_svc/text.py\n"))
    assert "notes-worker restarted after " in "".join(checkout.printed)
    second = checkout.pid
    assert second != first

    checkout.save("TEXT = b'third' +")
    eventually(lambda: checkout.has_printed("notes_svc does not import"))
    assert "SyntaxError: invalid syntax" in "".join(checkout.printed)
    assert (checkout.pid, checkout.read()) == (second, b"second"), "it runs on"

    checkout.save("TEXT = b'third'")
    eventually(lambda: checkout.read() == b"third")


def test_code_that_ends_at_its_start_is_shown_and_repaired_by_the_next_save(
    checkout: Checkout,
) -> None:
    main = checkout.root / "notes-svc/src/notes_svc/__main__.py"
    main.write_text(MAIN.replace("address =", "raise SystemExit('no address')\n    address ="))
    eventually(lambda: checkout.has_printed("notes-worker is not ready after"))
    assert "no address" in "".join(checkout.printed)
    assert checkout.read() is None

    main.write_text(MAIN)
    eventually(lambda: checkout.read() == b"first")
    eventually(lambda: checkout.has_printed("notes-worker restarted after"))


def test_a_file_that_no_process_runs_restarts_none(checkout: Checkout) -> None:
    before = checkout.pid
    (checkout.root / "notes-svc/README.py").write_text("")
    (checkout.root / "notes-svc/service.toml").write_text(DECLARATION)
    eventually(lambda: checkout.has_printed("notes-svc/service.toml is read by `make up`"))

    assert checkout.pid == before
