"""A ring wakes the relay; many rings are few datagrams."""

import asyncio

from shared.doorbell import Doorbell, Listener


class CountingListener(Listener):
    def __init__(self, event: asyncio.Event) -> None:
        super().__init__(event)
        self.count = 0

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.count += 1
        super().datagram_received(data, addr)


async def test_a_burst_of_rings_is_heard_as_two() -> None:
    """The first at once, the others together at the gap's end: none of them is lost."""
    event = asyncio.Event()
    transport, listener = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: CountingListener(event), ("127.0.0.1", 0)
    )
    host, port = transport.get_extra_info("sockname")
    doorbell = Doorbell(f"{host}:{port}")

    for _ in range(1_000):
        doorbell.ring()
    await asyncio.wait_for(event.wait(), 5)
    await asyncio.sleep(0.05)

    assert listener.count == 2
    doorbell.close()
    transport.close()


async def test_a_ring_that_nobody_hears_is_no_error() -> None:
    Doorbell(None).ring()
    deaf = Doorbell("127.0.0.1:9")
    deaf.ring()
    deaf.close()
    deaf.ring()
