"""Registrations at full speed, and their events in the topic."""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx
from aiokafka import TopicPartition

from local_stack.testing import bearer
from shared.messaging import messages, reading
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers
from test_support.system.stack import Stack
from test_support.waits import HANGS_AFTER_SECONDS
from users_svc.contract import TOPIC

REQUEST_SECONDS_MAX = 30
USER = {"name": "Jack", "address": "BJ", "gender": "male", "credit_limit": "100.00"}
REGISTERED, MOVED = 201, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One request; instants on the monotonic clock, in seconds."""

    user_id: str
    sent_at: float
    answered_at: float


async def register_until(
    stack: Stack, stopping: asyncio.Event, registrations: list[Registration]
) -> None:
    """Register users at full speed, and move each of them, so that each has two events."""
    async with httpx.AsyncClient(
        base_url=stack.hometown.addresses["users-api"],
        timeout=REQUEST_SECONDS_MAX,
        verify=stack.hometown.verify,
        headers=bearer(stack.folder, "clerk"),
    ) as client:
        while not stopping.is_set():
            sent_at = time.monotonic()
            answer = await client.post("/v1/users", json=USER)
            answered_at = time.monotonic()
            assert answer.status_code == REGISTERED, answer.text
            user_id = answer.json()["user_id"]
            registrations.append(
                Registration(user_id=user_id, sent_at=sent_at, answered_at=answered_at)
            )
            moved = await client.post(f"/v1/users/{user_id}/moves", json={"address": "SH"})
            assert moved.status_code == MOVED, moved.text


async def versions_of(brokers: Brokers, users: Sequence[str]) -> Mapping[str, list[int]]:
    """The versions of each user's events in the order of users.v1, read until all have arrived."""
    consumer = reading.create_client(brokers, auto_offset_reset="earliest")
    versions: dict[str, list[int]] = defaultdict(list)
    wanted = set(users)
    waiting = {(user, version) for user in wanted for version in (1, 2)}
    try:
        await consumer.start()
        partitions = range(TOPICS[TOPIC].partitions)
        consumer.assign([TopicPartition(TOPIC, number) for number in partitions])
        async with asyncio.timeout(HANGS_AFTER_SECONDS):
            while waiting:
                batches = await consumer.getmany(timeout_ms=200)
                for record in itertools.chain.from_iterable(batches.values()):
                    user = (record.key or b"").decode(errors="replace")
                    if user in wanted:
                        version = int(dict(record.headers)[messages.STREAM_VERSION])
                        versions[user].append(version)
                        waiting.discard((user, version))
    finally:
        await consumer.stop()
    return versions


def first_deliveries(versions: Mapping[str, Sequence[int]]) -> Mapping[str, list[int]]:
    """Without duplicates, which a relay can send after a crash; the order is kept as received."""
    return {user: list(dict.fromkeys(each)) for user, each in versions.items()}
