"""A notification wakes the relay; many notifications are few datagrams."""

import asyncio
import socket
from contextlib import AsyncExitStack
from functools import partial

import pytest

from shared.runtime.relay_notifier import Listener, RelayNotifier
from test_support.waits import HANGS_AFTER_SECONDS


class CountingListener(Listener):
    def __init__(self, event: asyncio.Event) -> None:
        super().__init__(event)
        self.count = 0

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.count += 1
        super().datagram_received(data, addr)


async def test_a_burst_of_rings_is_heard_as_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first at once, the others together at the gap's end: none of them is lost."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        transport, listener = await loop.create_datagram_endpoint(
            partial(CountingListener, asyncio.Event()), ("127.0.0.1", 0)
        )
        stack.callback(transport.close)
        host, port = transport.get_extra_info("sockname")
        relay_notifier = RelayNotifier(f"{host}:{port}")
        stack.callback(relay_notifier.close)

        now = loop.time()
        with monkeypatch.context() as stopped_clock:  # a busy machine may need more than the gap
            stopped_clock.setattr(loop, "time", lambda: now)
            for _ in range(1_000):
                relay_notifier.notify()
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while listener.count < 2:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)

        assert listener.count == 2


async def test_all_relays_behind_a_name_hear_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncExitStack() as stack:
        heard = [asyncio.Event(), asyncio.Event()]
        addresses = []
        for event in heard:
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                partial(Listener, event), ("127.0.0.1", 0)
            )
            stack.callback(transport.close)
            addresses.append(transport.get_extra_info("sockname"))
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *asked: [(*asked[2:], "", each) for each in addresses]
        )
        relay_notifier = RelayNotifier("relays:1")
        stack.callback(relay_notifier.close)

        relay_notifier.notify()

        for event in heard:
            await asyncio.wait_for(event.wait(), HANGS_AFTER_SECONDS)


async def test_a_notification_without_listener_is_no_error() -> None:
    RelayNotifier(None).notify()
    deaf = RelayNotifier("127.0.0.1:9")
    deaf.notify()
    deaf.close()
    deaf.notify()
