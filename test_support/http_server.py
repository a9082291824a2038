"""An HTTP server of a test, in a thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler
from threading import Thread

from local_stack.stack_spec import HOST

POLL_SECONDS = 0.01


@contextmanager
def serving(handler: Callable[..., BaseRequestHandler]) -> Iterator[str]:
    """The address of the server, without a slash at the end; each connection gets a handler."""
    with ThreadingHTTPServer((HOST, 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS})
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def receiving() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server, and the bodies that are posted to it."""
    received: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with serving(Receiver) as address:
        yield address, received
