"""A small stack in which three processes serve, and one is declared and does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from local_stack.ports import find_free
from shared.web.connections import server_config
from shared.web.health import served
from test_support.small_stack import Peer, SmallStack, entry


@pytest.fixture
def peers() -> dict[str, Peer]:
    return {"users-relay": Peer(), "orders-relay": Peer(), "observer": Peer()}


@pytest.fixture
async def stack(peers: dict[str, Peer]) -> AsyncIterator[SmallStack]:
    ports = {name: find_free() for name in (*peers, "users-worker")}
    async with AsyncExitStack() as servers:
        for name, peer in peers.items():
            await servers.enter_async_context(
                served(server_config(peer.create_app(), "127.0.0.1", ports[name]))
            )
        async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(30):
            for name in peers:
                await wait_for(client, f"http://127.0.0.1:{ports[name]}/health/ready")
        yield SmallStack(
            entries=[entry(name, port) for name, port in ports.items()],
            pids={name: number for number, name in enumerate((*peers, "kafka"), 1)},
        )


async def wait_for(client: httpx.AsyncClient, url: str) -> None:
    while True:
        try:
            await client.get(url)
        except httpx.TransportError:
            await asyncio.sleep(0.02)
        else:
            return


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client
