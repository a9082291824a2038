"""A broker that may be killed, behind a network that loses requests or answers on purpose.

The broker advertises the address of the network, so that all of its clients come through it. The
network reads no more of a request than its kind and its number.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from enum import Enum

from lessons.broker import quietly
from local_stack import kafka, ports, supervision
from local_stack.kafka import KAFKA
from local_stack.readiness import wait_until_ready
from local_stack.stack_spec import HOST, READY_SECONDS_MAX, StackContext, StackSpec
from local_stack.testing import throwaway_stack

RECORD_BYTES_MAX = 10_000
"""More than that is refused by the broker."""
SIZE = struct.Struct(">i")
HEADER = struct.Struct(">hhi")
"""Of a request: its kind, the version of that, and its number."""
PRODUCE = 0


class Loss(Enum):
    """What the network does to some of the requests with records; the connection breaks, except in
    silence."""

    NONE = "none"
    REQUEST = "request"
    REQUEST_IN_SILENCE = "request in silence"
    ANSWER = "answer"
    FIRST_ANSWER = "first answer"


LOST: Mapping[Loss, Collection[int]] = {
    Loss.NONE: (),
    Loss.REQUEST: (3, 6, 9),
    Loss.REQUEST_IN_SILENCE: (3,),
    Loss.ANSWER: (3, 6, 9),
    Loss.FIRST_ANSWER: (1,),
}
"""Which ones, of the requests of a trial that carry records."""


class Network:
    """Connections to a broker. The requests of a trial are counted: which are lost is certain."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._loss = Loss.NONE
        self._requests = 0
        self._connections: set[asyncio.Task[None]] = set()

    def begin(self, loss: Loss) -> None:
        """A new trial."""
        self._loss, self._requests = loss, 0

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Clients connect within; those that are left then are disconnected."""
        async with await asyncio.start_server(self._accept, HOST, port):
            yield
            for each in self._connections:
                each.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, until either side closes it."""
        try:
            from_broker, to_broker = await asyncio.open_connection(HOST, self._broker_port)
        except OSError:
            writer.close()
            return
        unanswered: set[int] = set()
        directions = [
            asyncio.create_task(self._carry_requests(reader, to_broker, unanswered)),
            asyncio.create_task(carry_answers(from_broker, writer, unanswered)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in directions:
                each.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            to_broker.close()
            writer.close()

    async def _carry_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unanswered: set[int]
    ) -> None:
        while True:
            request = await read_frame(reader)
            kind, _, number = HEADER.unpack_from(request, SIZE.size)
            match self._choose_loss(kind):
                case Loss.REQUEST:
                    return
                case Loss.REQUEST_IN_SILENCE:
                    continue
                case Loss.ANSWER | Loss.FIRST_ANSWER:
                    unanswered.add(number)
            writer.write(request)
            await writer.drain()

    def _choose_loss(self, kind: int) -> Loss:
        if kind != PRODUCE:
            return Loss.NONE
        self._requests += 1
        return self._loss if self._requests in LOST[self._loss] else Loss.NONE


async def carry_answers(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unanswered: set[int]
) -> None:
    """Ends with the first answer that is lost: by then the broker has stored the records."""
    while True:
        answer = await read_frame(reader)
        (number,) = SIZE.unpack_from(answer, SIZE.size)
        if number in unanswered:
            return
        writer.write(answer)
        await writer.drain()


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """One request or one answer, with its size."""
    size = await reader.readexactly(SIZE.size)
    return size + await reader.readexactly(*SIZE.unpack(size))


@contextmanager
def open_broker() -> Iterator["Broker"]:
    """A broker of its own that is gone afterwards."""
    port = ports.find_free()
    process = replace(KAFKA, prepare=lambda context: prepare(context, port))
    with quietly(throwaway_stack(StackSpec(processes=(process,)))) as context:
        yield Broker(context, port)


def prepare(context: StackContext, port: int) -> None:
    """As always, with some settings more; the last one of a name counts."""
    KAFKA.prepare(context)
    with (kafka.home(context) / "server.properties").open("a") as properties:
        properties.write(
            f"advertised.listeners=PLAINTEXT://{HOST}:{port}\n"
            f"message.max.bytes={RECORD_BYTES_MAX}\n"
        )


class Broker:
    """Started, and reached through `network` only."""

    def __init__(self, context: StackContext, port: int) -> None:
        self._context = context
        self._port = port
        self.servers = f"{HOST}:{port}"
        self.network = Network(context.ports["kafka"])

    def connected(self) -> AbstractAsyncContextManager[None]:
        """The network is there within."""
        return self.network.listening(self._port)

    async def kill(self) -> None:
        """kill -9. Its supervisor starts it again, which takes seconds."""
        await asyncio.to_thread(supervision.kill, self._context.folder, KAFKA.name)

    async def wait_until_back(self) -> None:
        await wait_until_ready(self._context, KAFKA, READY_SECONDS_MAX)
