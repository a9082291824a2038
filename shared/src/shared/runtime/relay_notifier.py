"""A hint to the relay that something was committed: one UDP datagram, at most one a millisecond.

Never a NOTIFY inside the writing transaction, which would cost most of the write throughput.
Nothing depends on the hint: the relay also polls by itself, at most IDLE_SECONDS_MAX later.
"""

import asyncio
import socket

MINIMUM_GAP_SECONDS = 0.001
RESOLVED_SECONDS = 5.0
"""How long a name's address is used: a relay may move, and to ask for it blocks the process."""


class RelayNotifier:
    """Notifies the relay at `address` ("host:port"); None notifies no relay.

    A host that is a name is resolved again after RESOLVED_SECONDS, because a relay may move. All
    its addresses receive it: of several relays only one publishes, and a writer cannot know which.
    """

    def __init__(self, address: str | None) -> None:
        self._socket: socket.socket | None = None
        self._last_at = float("-inf")
        self._pending = False
        if address is not None:
            host, _, port = address.rpartition(":")
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._host, self._port = host, int(port)
            self._targets: set[tuple[str, int]] = set()
            self._resolved_at = float("-inf")

    def notify(self) -> None:
        """Call it after a commit, in a running event loop. Never waits for the relay, never raises.

        A notification within the gap after another one is sent at the gap's end: the relay may have
        looked between the two commits.
        """
        if self._socket is None or self._pending:
            return
        loop = asyncio.get_running_loop()
        wait = self._last_at + MINIMUM_GAP_SECONDS - loop.time()
        if wait <= 0:
            self._send(loop.time())
        else:
            self._pending = True
            loop.call_later(wait, lambda: self._send(loop.time()))

    def _send(self, now: float) -> None:
        self._last_at, self._pending = now, False
        if self._socket is None:
            return
        try:
            if now >= self._resolved_at + RESOLVED_SECONDS:
                self._resolved_at = now
                found = socket.getaddrinfo(self._host, self._port, socket.AF_INET)
                self._targets = {(str(each[0]), int(each[1])) for *_, each in found}
            for target in self._targets:
                self._socket.sendto(b"", target)
        except OSError:
            pass  # only a hint; a full buffer or an absent relay is no error here

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Listener(asyncio.DatagramProtocol):
    """The relay's side: `event` is set by each notification."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._event.set()
