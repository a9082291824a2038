"""A cheap HTTP/1.1 client: one request after another on a kept connection."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

RESPONSE_SECONDS_MAX = 60
HEAD_ENDS = b"\r\n\r\n"
STATUS = slice(9, 12)
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
RETRY_AFTER = re.compile(rb"\r\nretry-after: *([0-9]+)\r\n", re.IGNORECASE)


class Reply(NamedTuple):
    """`retry_after` is in seconds; None when the server does not say."""

    status: int
    body: bytes
    retry_after: int | None


class UnexpectedStatus(Exception):
    """A response with another status than the expected one; the message has status and body."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"{reply.status} {reply.body.decode(errors='replace')}")
        self.reply = reply


class Connection:
    """A connection to one server, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def is_closed(self) -> bool:
        """Whether the server closed it, as it does when a connection is idle."""
        return self._reader.at_eof()

    async def ask(self, request: bytes, *, status: int) -> bytes:
        """The body of the response.

        Raises:
            UnexpectedStatus: the response has another status.
            TimeoutError: there is no response within RESPONSE_SECONDS_MAX.
        """
        async with asyncio.timeout(RESPONSE_SECONDS_MAX):
            self._writer.write(request)
            reply = await self._reply()
        if reply.status != status:
            raise UnexpectedStatus(reply)
        return reply.body

    async def _reply(self) -> Reply:
        head = await self._reader.readuntil(HEAD_ENDS)
        length = LENGTH.search(head)
        body = await self._reader.readexactly(int(length[1])) if length else b""
        after = RETRY_AFTER.search(head)
        return Reply(int(head[STATUS]), body, int(after[1]) if after else None)


@asynccontextmanager
async def connect(address: str) -> AsyncIterator[Connection]:
    """A connection to host:port, closed at the end of the block."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def create_request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """The bytes of a request with a body in JSON, or without one."""
    given = {"Host": "bench", **headers}
    if body:
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode() + HEAD_ENDS + body
